"""The same text stands there with different labels

## What it says

Texts occur with more than one label.

## Why

The model cannot get both right: the score has a ceiling, and what is learned contradicts itself.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Decide which label is right and delete the other rows.

## How safe

Unsafe: only you can know which is right.

## Sources

fitune: data/checking ; fitune: data/reading
"""

SEVERITY = "warning"
