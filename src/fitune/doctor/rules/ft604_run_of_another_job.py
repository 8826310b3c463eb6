"""The directory holds a run of another job or other data

## What it says

The message says what differs.

## Why

Going on would mix two trainings.

## How to know

The message names the file or folder.

## How to fix

Train with the same model and settings, or add `--fresh`: the old run is kept.

## How safe

Safe.

## Sources

fitune: training/resume
"""

SEVERITY = "error"
