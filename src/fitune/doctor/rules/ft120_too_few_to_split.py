"""Too few different texts to split

## What it says

All rows have the same text, or there is one row.

## Why

A development set needs texts of its own.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Give a development file with `--dev`, or add rows with other texts.

## How safe

Safe.

## Sources

fitune: data/checking
"""

SEVERITY = "error"
