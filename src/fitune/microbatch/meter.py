"""Bytes of a device that a process holds and could still get."""

from __future__ import annotations

from typing import Protocol

import torch


class Meter(Protocol):
    """What is known of a device's memory. On a CPU nothing is: there is no meter."""

    def allocated_bytes(self) -> int:
        """Held by live tensors."""
        ...

    def available_bytes(self) -> int:
        """What this process could still allocate: free on the card, plus what its allocator holds in no tensor."""
        ...

    def peak_bytes(self) -> int:
        """Most bytes held by live tensors since ``reset_peak``."""
        ...

    def reset_peak(self) -> None:
        """Start ``peak_bytes`` again."""
        ...


class CudaMeter:
    """The figures of PyTorch's allocator and of the driver."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def allocated_bytes(self) -> int:
        return torch.cuda.memory_allocated(self._device)

    def available_bytes(self) -> int:
        free, _total = torch.cuda.mem_get_info(self._device)
        return free + torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)

    def peak_bytes(self) -> int:
        return torch.cuda.max_memory_allocated(self._device)

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(self._device)


def meter_for(device: torch.device) -> Meter | None:
    """The meter of a CUDA device; None for every other."""
    return CudaMeter(device) if device.type == "cuda" else None
