"""Rows of the file could not be used

## What it says

Rows without the form that the format asks for.

## Why

They are not trained on; nothing is dropped without being named.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Correct these rows; the reasons stand beside them.

## How safe

Safe.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
