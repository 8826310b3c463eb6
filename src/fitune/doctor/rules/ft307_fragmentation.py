"""Fragmentation: memory is reserved, but in pieces too small

## What it says

`X is reserved by PyTorch but unallocated`, and X is larger than what was asked for.

## Why

Batches of many different lengths split the allocator's segments; a segment with one live block cannot be given
back.

## How to know

Reserved minus allocated is larger than the block asked for. When it is small, the card is really full (FT301).

## How to fix

Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` before Python starts (not under WSL2), and sort windows
by length or bound the tokens per pass, as fitune does.

## How safe

Exact: only the allocator's book-keeping changes.

## Sources

pytorch/pytorch#29554 ; pytorch/pytorch#37726 ;
https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom, gib
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
SAFETY = "safe"
COMMAND = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def read(log: Log) -> Iterator[Symptom]:
    """Reserved but unallocated memory larger than the block asked for."""
    oom = find_oom(log)
    if oom is None or not oom.tried_bytes:
        return
    idle = oom.idle_bytes
    if idle >= max(oom.tried_bytes, 256 * 2**20) and idle > 0.08 * oom.total_bytes:
        title = _(
            "Fragmentation: {idle} reserved but unallocated, {tried} asked for",
            idle=gib(idle),
            tried=gib(oom.tried_bytes),
        )
        yield symptom(oom.hits, confidence=0.94, title=title)
