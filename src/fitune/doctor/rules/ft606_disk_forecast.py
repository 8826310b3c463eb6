"""The disk has less room than the checkpoints will need

## What it says

Predicted before step 1.

## Why

A full state of BERT-base takes 1.2-1.4 GB.

## How to know

The message names the file or folder.

## How to fix

Make room, or give another directory with `--out`.

## How safe

Safe: fewer states are kept meanwhile.

## Sources

fitune: checkpoint/policy ; huggingface/transformers#35070
"""

SEVERITY = "warning"
