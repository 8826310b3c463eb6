"""Another process works in this run's directory

## What it says

The lock names its pid, host and start.

## Why

Two trainings in one directory would overwrite each other.

## How to know

The message names the file or folder.

## How to fix

Watch it with `fitune attach`, or end it with `fitune stop`; remove the lock only when that process is dead.

## How safe

Unsafe: never with a live process.

## Sources

fitune: checkpoint/lock
"""

SEVERITY = "error"
