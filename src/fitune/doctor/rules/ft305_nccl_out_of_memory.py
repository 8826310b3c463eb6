"""NCCL finds no memory on the card

## What it says

`NCCL WARN Cuda failure 2 'out of memory'` or `Cuda failure 'out of memory'`.

## Why

NCCL allocates its channels outside PyTorch's cache when the first collective runs, and the card is full by
then, or all ranks use the same card.

## How to know

The line names the rank; `nvidia-smi` shows whether several ranks sit on card 0.

## How to fix

Set the card of each rank before anything else (`torch.cuda.set_device(local_rank)`), and leave about 1 GiB free
with a smaller micro-batch.

## How safe

Exact: the micro-batch does not change what is learned.

## Sources

https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"NCCL.*Cuda failure \d* ?'?out of memory",
    r"Cuda failure (?:2 )?'out of memory'",
)


def read(log: Log) -> Iterator[Symptom]:
    """NCCL finds no memory on the card, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
