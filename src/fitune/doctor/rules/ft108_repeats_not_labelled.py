"""Repeats of a labelled entity are not labelled

## What it says

The same words are an entity once and nothing another time, in one text.

## Why

If they are entities too, the model is punished for finding them.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Label them, if they mean the same.

## How safe

Unsafe: only you can know.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
