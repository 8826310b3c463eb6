"""Invisible byte order marks inside texts

## What it says

U+FEFF stands in texts.

## Why

Left over from joining files; it makes equal texts different.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Remove the character: `--fix` does.

## How safe

Safe: offsets are moved along.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
