"""The reader noticed something and went on

## What it says

A note about how the file was read, how often it applied, and the first rows that it is about.

## Why

The file allows more than one reading; the one that was taken is named.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Nothing to do, if you expected it. Otherwise look at the rows that are named, or name the format with `--format`.

## How safe

Only shown.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
