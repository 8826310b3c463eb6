"""CUDA error: out of memory, outside PyTorch's allocator

## What it says

The driver itself refused: `CUDA error: out of memory` or `CUDA_ERROR_OUT_OF_MEMORY`, often at the first
`.cuda()`.

## Why

The card is full before PyTorch's allocator gets its turn: another process, a dead notebook kernel, or no room
for the CUDA context (300-1,300 MiB).

## How to know

`nvidia-smi` shows the memory in use before the program starts; `fitune doctor` names who uses it.

## How to fix

Free the card first: `fitune doctor` lists the processes on it; stop your own old ones, or choose a free card
with `CUDA_VISIBLE_DEVICES`.

## How safe

Choosing another card is safe. Stopping a process loses what it had not saved.

## Sources

https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
COMMAND = "fitune doctor"
PATTERNS = (
    r"HIP error: out of memory|cuda runtime error \(2\)|error=2 : out of memory",
    r"CUDA(?: driver)? error: out of memory",
    r"CUDA_ERROR_OUT_OF_MEMORY",
    r"cudaErrorMemoryAllocation",
    # PyTorch asks the driver how much is left, to say so in its message, and the driver does not answer.
    r"NVML_SUCCESS == .*INTERNAL ASSERT FAILED.*CUDACachingAllocator",
)


def read(log: Log) -> Iterator[Symptom]:
    """CUDA error, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9)
