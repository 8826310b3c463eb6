"""There is no trained model in that folder

## What it says

No fitune.json, or no such folder.

## Why

The run has not finished, or another folder was meant.

## How to know

The message names the file or folder.

## How to fix

Name a run's directory such as runs/train-1, or the model folder inside it.

## How safe

Safe.

## Sources

fitune: tasks/saved
"""

SEVERITY = "error"
