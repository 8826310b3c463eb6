"""The format of a data file was not recognised

## What it says

`no format was recognised`, `the file does not look like the format ...`, or `there is no format ...`.

## Why

The content fits none of the formats that fitune reads, or `--format` names one that it does not fit.

## How to know

Look at the first lines: `head -5 FILE`. `fitune check FILE` says what was tried.

## How to fix

Name the format with `--format`, or save the file as JSONL with `text` and `entities` (or `label`).

## How safe

Safe; nothing is read wrongly in silence.

## Sources

fitune: data/reading
"""

SEVERITY = "error"
