"""cuBLAS finds no memory for its workspace

## What it says

`CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)`.

## Why

cuBLAS allocates 8-32 MiB outside PyTorch's cache, and the cache holds the whole card. Rarely it is the late
echo of a device-side assert.

## How to know

A device-side assert in the same log points to a wrong label or id instead; without one it is memory.

## How to fix

Leave room: a smaller micro-batch (`fitune plan FILE`); in a script, `torch.cuda.empty_cache()` and a retry
get over it once.

## How safe

Exact: the micro-batch does not change what is learned.

## Sources

https://docs.pytorch.org/docs/stable/notes/cuda.html#cublas-workspaces
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT531", "FT532", "FT533", "FT291"}
PATTERNS = (r"CUBLAS_STATUS_ALLOC_FAILED",)


def read(log: Log) -> Iterator[Symptom]:
    """cuBLAS finds no memory for its workspace, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
