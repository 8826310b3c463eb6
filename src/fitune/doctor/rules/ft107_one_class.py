"""All rows have one class

## What it says

Every labelled row has the same class.

## Why

There is nothing to tell apart, and a model that always gives this answer is perfect: `fitune train` and
`fitune baseline` refuse it (FT130). Often a file that is sorted by class was cut, or another column holds the labels.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

If one file was cut into several, join them and let fitune split: name that file alone. If the labels stand in another
column, name it: `--label-column NAME`. Otherwise rows of a second class are missing.

## How safe

Unsafe: other rows are trained on.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
