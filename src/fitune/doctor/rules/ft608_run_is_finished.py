"""This run is finished: same job, same data

## What it says

The same command was typed again.

## Why

There is nothing left to train.

## How to know

The message names the file or folder.

## How to fix

Use its model, or add `--fresh` to train anew beside it.

## How safe

Safe.

## Sources

fitune: training/resume ; PriorLabs/TabPFN#814
"""

SEVERITY = "note"
