"""Recognise out-of-memory: five families, by type and by text, and nothing else. Read the figures of the message.

A text counts only in an error that the runtime raises itself (a RuntimeError), at the start of one of its lines,
so that a row of data that quotes such a message is not taken for one.
"""

from __future__ import annotations

import gc
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

Family = Literal["allocator", "driver", "cublas", "cudnn", "nccl"]

# A line may start with the name of the exception class where a worker's traceback is repeated (DataParallel).
_START = r"^(?:[\w.]+: )?"
_FAMILIES: tuple[tuple[Family, re.Pattern[str]], ...] = (
    # NCCL first: its text quotes the driver's.
    ("nccl", re.compile(r"^(?=[\s\S]*\bnccl)[\s\S]*\bCuda failure (?:\d+ )?'out of memory'", re.I)),
    ("allocator", re.compile(_START + r"(?:CUDA|HIP) out of memory\. Tried to allocate ", re.M)),
    ("driver", re.compile(_START + r"(?:CUDA|HIP) (?:driver )?error: out of memory", re.M)),
    ("driver", re.compile(_START + r"cuda runtime error \(2\) ?: out of memory", re.M)),
    ("cublas", re.compile(_START + r"(?:CUDA error: )?CUBLAS_STATUS_ALLOC_FAILED\b", re.M)),
    ("cublas", re.compile(_START + r"cublas runtime error ?: resource allocation failed", re.M)),
    # INTERNAL_ERROR is what cuDNN says when its workspace does not fit; version 9 adds suffixes.
    ("cudnn", re.compile(_START + r"cuDNN error: CUDNN_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR\w*)", re.M)),
)

_UNITS = {"bytes": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_SIZE = r"([\d.]+) (bytes|B|KiB|MiB|GiB|TiB)"
_FIGURES = {
    "requested_bytes": (rf"Tried to allocate {_SIZE}",),
    "total_bytes": (rf"total capaci?ty of {_SIZE}", rf"{_SIZE} total capacity"),
    "free_bytes": (rf"of which {_SIZE} is free", rf"; {_SIZE} free"),
    "allocated_bytes": (rf"Of the allocated memory {_SIZE} is allocated by PyTorch", rf"{_SIZE} already allocated"),
    "reserved_bytes": (rf"{_SIZE} reserved in total by PyTorch", rf"{_SIZE} cached"),
    "unallocated_bytes": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
}


@dataclass(frozen=True)
class OutOfMemory:
    """What is kept of an out-of-memory error: words and figures, no traceback (it would hold the memory)."""

    family: Family
    text: str
    """The error's message, its first 2,000 characters."""
    requested_bytes: int | None = None
    """What could not be allocated."""
    total_bytes: int | None = None
    """Capacity of the card."""
    free_bytes: int | None = None
    """Free on the card, for anyone."""
    allocated_bytes: int | None = None
    """Held by live tensors of this process."""
    reserved_bytes: int | None = None
    """Held by PyTorch's allocator, live tensors included."""
    unallocated_bytes: int | None = None
    """Reserved and in no tensor: the cache, or fragments."""

    @property
    def certain(self) -> bool:
        """cuDNN's INTERNAL_ERROR has other causes too; an error that stays with one window is then no memory matter."""
        return "INTERNAL_ERROR" not in self.text or "ALLOC" in self.text


def out_of_memory(error: BaseException) -> OutOfMemory | None:
    """The five families of out-of-memory, or None for every other error.

    torch's allocator (``torch.OutOfMemoryError``, and RuntimeError before it had a type) · the driver outside the
    allocator · cuBLAS creating its handle · cuDNN's workspace · NCCL. A CPU that has no memory is none of them.
    """
    text = str(error)
    family: Family | None = None
    if isinstance(error, torch.OutOfMemoryError):
        family = "allocator"
    elif isinstance(error, RuntimeError):
        family = next((name for name, pattern in _FAMILIES if pattern.search(text)), None)
    return None if family is None else OutOfMemory(family, text[:2000], **_figures(text))


def _figures(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, patterns in _FIGURES.items():
        match = next((m for pattern in patterns if (m := re.search(pattern, text))), None)
        if match:
            found[name] = int(float(match[1]) * _UNITS[match[2]])
    return found


def forget(error: BaseException) -> None:
    """Drop what the error holds: the local variables of the frames it went through, and those of its causes.

    The frames hold activations and inputs; as long as they live, the memory they take is not free for a retry.
    """
    for link in tuple(_chain(error)):
        traceback.clear_frames(link.__traceback__)
        link.__traceback__ = link.__context__ = link.__cause__ = None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            todo += [link.__cause__, link.__context__]


def release(device: torch.device) -> None:
    """Collect reference cycles and give the allocator's cache back, so that cuBLAS, cuDNN and NCCL find room too."""
    gc.collect()
    if device.type in ("cuda", "xpu"):
        torch.get_device_module(device).empty_cache()
