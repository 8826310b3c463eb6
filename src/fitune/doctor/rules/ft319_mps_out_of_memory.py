"""Out of memory on Apple's MPS backend

## What it says

`MPS backend out of memory (MPS allocated: ..., max allowed: ...)`.

## Why

MPS stops at a fixed share of unified memory (its high watermark).

## How to know

The message names allocated, other and allowed bytes.

## How to fix

Use a smaller micro-batch and `gradient_accumulation_steps`, and close other programs; do not set the watermark
ratio to 0, which can freeze the system.

## How safe

Exact: the micro-batch does not change what is learned.

## Sources

https://docs.pytorch.org/docs/stable/notes/mps.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (r"MPS backend out of memory",)


def read(log: Log) -> Iterator[Symptom]:
    """Out of memory on Apple's MPS backend, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
