"""Tags may not follow the tag before them

## What it says

An inside tag stands where its scheme does not allow it, such as M-ORG after O.

## Why

It was read as the beginning of an entity, as conlleval does.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Correct the tags; a repaired copy has valid ones (`--fix`).

## How safe

Safe: the entities stay as they were read.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
