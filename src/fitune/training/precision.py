"""Which precision this machine trains in, chosen from the hardware and confirmed by a probe."""

from __future__ import annotations

import time
from typing import Literal

import torch

from fitune.messages import _

Precision = Literal["fp32", "fp16", "bf16"]

PROBE_SIZE = 2048
FASTER_BY = 1.2
"""A half precision must be this much faster than fp32 in the probe to be worth its rounding."""
SLOWER_BY = 1.2
"""A precision that was asked for is told to be slow from here on."""


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


def slowness(precision: Precision, device: torch.device) -> float:
    """How many times as long a linear layer takes, forward and back, as in fp32; 1.0 for fp32 itself. Measured, in a
    quarter of a second at most; draws no random number."""
    if precision == "fp32":
        return 1.0
    dtype = torch.bfloat16 if precision == "bf16" else torch.float16
    return _layer_seconds(device, dtype) / _layer_seconds(device, None)


def slow_precision_text(precision: Precision, device: torch.device) -> str | None:
    """What to say of a precision that was asked for and is slower than fp32 here; None: it is not."""
    times = slowness(precision, device)
    if times < SLOWER_BY:
        return None
    return _(
        "{precision} is slow on this machine: a layer takes {times} times as long as in fp32 (just measured). "
        "Type --precision fp32, or leave the precision to fitune",
        precision=precision,
        times=f"{times:.0f}" if times >= 3 else f"{times:.1f}",
    )


def _layer_seconds(device: torch.device, dtype: torch.dtype | None) -> float:
    rows, width = (512, 256) if device.type == "cpu" else (4096, 1024)
    inputs, weight = torch.ones(rows, width, device=device), torch.ones(width, width, device=device, requires_grad=True)
    best = float("inf")
    for _attempt in range(3):
        begin = time.perf_counter()
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            outputs = torch.nn.functional.linear(inputs, weight)
        outputs.sum().backward()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - begin)
    return best


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
