"""Texts are empty

## What it says

Rows without a text.

## Why

There is nothing to learn from them.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Remove the rows: `--fix` does.

## How safe

Safe.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
