"""Labels of one split never occur in training

## What it says

Rows have labels that the training file never has.

## Why

The model cannot learn what it never sees; every such row counts as an error.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Correct the label names, or move some of these rows to training.

## How safe

Unsafe: the data changes.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
