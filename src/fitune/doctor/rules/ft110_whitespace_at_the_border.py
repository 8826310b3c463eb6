"""Entities begin or end with whitespace

## What it says

The first or last character of an entity is a blank.

## Why

Tokenizers drop whitespace, so such an entity is never found exactly.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Take the whitespace off: `--fix` does.

## How safe

Safe.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
