"""There is one class only

## What it says

A classifier cannot be trained on it.

## Why

Every training row has the same label.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Give rows of at least two classes.

## How safe

Safe.

## Sources

fitune: training ; fitune: tasks
"""

SEVERITY = "error"
