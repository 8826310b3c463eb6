"""The rows are sorted by class

## What it says

All rows of a class stand together.

## Why

Training shuffles, but cutting the file anywhere gives parts with one class.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Let fitune split the file, or shuffle before cutting.

## How safe

Safe.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
