"""The same text stands there with different labels

## What it says

Texts occur with more than one label; a file that is empty, damaged or needs a missing package is refused under
this code too.

## Why

The model cannot get both right: the score has a ceiling, and what is learned contradicts itself.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Decide which label is right and delete the other rows. For a refused file the message says what to install or to
save again.

## How safe

Unsafe: only you can know which is right.

## Sources

fitune: data/checking ; fitune: data/reading
"""

SEVERITY = "warning"
