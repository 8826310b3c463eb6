"""Too few rows to split a development set off

## What it says

One side would be empty.

## Why

A handful of rows and a small `dev_fraction`.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Give a file with `--dev`, or a larger `dev_fraction`.

## How safe

Unsafe: fewer rows are trained on.

## Sources

fitune: training ; fitune: tasks
"""

SEVERITY = "error"
