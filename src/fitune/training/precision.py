"""Which precision this machine trains in, chosen from the hardware and confirmed by a probe."""

from __future__ import annotations

import time
from typing import Literal

import torch

Precision = Literal["fp32", "fp16", "bf16"]

PROBE_SIZE = 2048
FASTER_BY = 1.2
"""A half precision must be this much faster than fp32 in the probe to be worth its rounding."""


def choose_precision(device: torch.device) -> tuple[Precision, str]:
    """Precision, and why: bf16 from Ampere (sm80) on, fp16 on Volta and Turing (T4, V100), else fp32.

    ``torch.cuda.is_bf16_supported()`` is not asked: it says True for a T4, where bf16 is emulated and slow.
    """
    if device.type != "cuda":
        return "fp32", f"{device.type}: half precision is slower here"
    capability = torch.cuda.get_device_capability(device)
    candidate: Precision = "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "fp32"
    if candidate == "fp32":
        return candidate, f"sm{capability[0]}{capability[1]} has no tensor cores"
    dtype = torch.bfloat16 if candidate == "bf16" else torch.float16
    gain = _matmul_seconds(device, torch.float32) / _matmul_seconds(device, dtype)
    if gain < FASTER_BY:
        return "fp32", f"{candidate} is only {gain:.1f} x as fast as fp32 in the probe"
    return candidate, f"sm{capability[0]}{capability[1]}, {gain:.1f} x as fast as fp32 in the probe"


def _matmul_seconds(device: torch.device, dtype: torch.dtype) -> float:
    a = torch.randn(PROBE_SIZE, PROBE_SIZE, device=device, dtype=dtype)
    best = float("inf")
    for _attempt in range(4):
        torch.cuda.synchronize(device)
        begin = time.perf_counter()
        for _product in range(5):
            torch.mm(a, a)
        torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - begin)
    return best
