"""All rows have one class

## What it says

Every labelled row has the same class.

## Why

There is nothing to tell apart; often the file is sorted by class and was cut.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Let fitune split the whole file: leave out `--dev`.

## How safe

Unsafe: other rows are trained on.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
