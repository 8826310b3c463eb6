"""The disk has less room than the checkpoints will need

## What it says

Predicted before step 1: how much the model and the full states need, and how much is free. When not even the finished
model fits, the run is refused.

## Why

A full state of BERT-base takes 1.2-1.4 GB, the model 0.4 GB; each is written beside the one that it replaces.

## How to know

The message names the file or folder.

## How to fix

Make room, or give a directory on another disk with `--out`.

## How safe

Safe: fewer states are kept meanwhile.

## Sources

fitune: checkpoint/policy ; huggingface/transformers#35070
"""

SEVERITY = "warning"
