"""Texts are longer than one window

## What it says

They are split into overlapping windows.

## Why

Nothing is cut off: every character is seen, and every entity is scored.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Nothing to do.

## How safe

Only shown.

## Sources

fitune: data/checking ; ThilinaRajapakse/simpletransformers#227
"""

SEVERITY = "note"
