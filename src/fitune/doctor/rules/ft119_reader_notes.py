"""The reader noticed something and went on

## What it says

A note about how the file was read.

## Why

The file allows more than one reading; the one that was taken is named.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Look at the rows, if you did not expect it.

## How safe

Only shown.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
