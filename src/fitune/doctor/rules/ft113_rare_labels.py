"""Some labels are very rare

## What it says

Labels with a handful of rows.

## Why

Too few to learn from, and their scores jump with every change.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Add rows, or join these labels with others.

## How safe

Unsafe: the labels change.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
