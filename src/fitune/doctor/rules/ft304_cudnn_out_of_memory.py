"""cuDNN fails for want of memory

## What it says

`CUDNN_STATUS_ALLOC_FAILED`, or `CUDNN_STATUS_INTERNAL_ERROR` when the card is nearly full.

## Why

cuDNN could not get its workspace; recurrent and convolution layers need one.

## How to know

`nvidia-smi` while it runs: the card is at its limit. When it is nearly empty, the cuDNN library itself is
broken (FT404).

## How to fix

Use a smaller micro-batch (`fitune plan FILE`), and let one cuDNN be found: no second one in
`LD_LIBRARY_PATH`.

## How safe

Exact: the micro-batch does not change what is learned.

## Sources

https://docs.nvidia.com/deeplearning/cudnn/latest/api/cudnn-graph-library.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"CUDNN_STATUS_ALLOC_FAILED",
    r"CUDNN_STATUS_INTERNAL_ERROR|Unable to find a valid cuDNN algorithm",
)


def read(log: Log) -> Iterator[Symptom]:
    """cuDNN fails for want of memory, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9)
