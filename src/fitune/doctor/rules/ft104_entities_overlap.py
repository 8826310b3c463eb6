"""Entities overlap

## What it says

Two entities share characters and neither lies inside the other.

## Why

One tag a character cannot hold both: the longer is kept.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Decide where each begins and ends.

## How safe

Unsafe: only you can know.

## Sources

fitune: data/checking ; anuzzolese/oke-challenge#8
"""

SEVERITY = "warning"
