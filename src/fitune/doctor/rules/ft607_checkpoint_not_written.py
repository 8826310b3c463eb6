"""The checkpoint was not saved: the disk failed

## What it says

The system reported an error other than a full or read-only disk.

## Why

A network disk that went away, or a failing one.

## How to know

The message names the file or folder.

## How to fix

Check the disk; the earlier checkpoints are intact.

## How safe

Safe.

## Sources

fitune: checkpoint/commit
"""

SEVERITY = "error"
