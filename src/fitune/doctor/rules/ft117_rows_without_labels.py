"""Some rows have no labels

## What it says

The others do.

## Why

They are neither trained on nor scored.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Label them, or keep them for prediction.

## How safe

Safe.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
