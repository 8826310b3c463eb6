"""The output format cannot hold this row

## What it says

`the format ... cannot hold ...`, or `the encoding ... has no ...`.

## Why

Some formats have no place for nested entities, for scores, for several labels or for a character.

## How to know

The message names the row and what the format has no place for.

## How to fix

Choose an output file that ends in `.jsonl`: it holds everything.

## How safe

Safe; the input is not touched and no half-written file is left.

## Sources

fitune: data/formats
"""

SEVERITY = "error"
