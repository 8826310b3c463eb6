"""A note about the data of this run

## What it says

What was left out or assumed when the files were read.

## Why

Written into the run so that it can be looked up later.

## How to know

The message names the step; the run's events.jsonl holds all of them.

## How to fix

Read it; nothing has to be done.

## How safe

Only shown.

## Sources

fitune: training ; fitune: tasks
"""

SEVERITY = "note"
