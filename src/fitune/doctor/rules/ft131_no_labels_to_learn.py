"""The file has no labels to learn from

## What it says

Texts without labels.

## Why

The label column was not recognised, or the file is meant for prediction.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Name the column with `--label-column`, or the format with `--format`; `fitune check FILE` shows what was read.

## How safe

Safe.

## Sources

fitune: training ; fitune: tasks
"""

SEVERITY = "error"
