"""CUDA was used before a fork

## What it says

`Cannot re-initialize CUDA in forked subprocess`.

## Why

A loader or worker process made by fork inherits a CUDA context that it cannot use; some code touches the card
in `__getitem__` or in the collator.

## How to know

The traceback runs through a worker's `_worker_loop`.

## How to fix

Keep tensors on the CPU in data set and collator, or set `dataloader_num_workers=0`; else the spawn start
method.

## How safe

Safe: nothing that is learned changes.

## Sources

https://docs.pytorch.org/docs/stable/notes/multiprocessing.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (r"Cannot re-initialize CUDA in forked subprocess",)
BARE = r"CUDA error: initialization error|cudaErrorInitializationError"


def read(log: Log) -> Iterator[Symptom]:
    """CUDA was used before a fork, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.98)
    # CUDA's own word, without PyTorch's check before it: most often a worker that was forked from a parent with CUDA.
    yield from matches(log, (BARE,), confidence=0.75)
