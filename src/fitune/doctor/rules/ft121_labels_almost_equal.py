"""Labels differ only in case, width or blanks

## What it says

Two spellings of what is probably one label.

## Why

The model treats them as two classes.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Write the label in one way.

## How safe

Unsafe: the labels change.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
