"""How long a pass and a job take on a card: ops against the card's rates. Always a range, never a promise.

A pass takes the longer of what the card needs (each op the longer of its arithmetic and its bytes) and what the host
needs to launch it. None of the constants is fitted; ``docs`` shows the result beside published throughputs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from fitune.planning.template import Template
from fitune.planning.workload import Shape
from fitune.values import Card, Fit

GEMM_EFFICIENCY = 0.6
"""Share of the dense peak that cuBLAS reaches on large products of encoders' sizes."""
ATTENTION_EFFICIENCY = 0.3
"""The same for fused attention and batched products."""
BANDWIDTH_EFFICIENCY = 0.75
"""Share of the memory bandwidth that elementwise kernels reach."""
TOKENS_PER_TFLOPS = 4.0
"""A product of so many tokens per TFLOPS of the card reaches half of its efficiency: smaller ones leave units idle."""
KERNEL_SECONDS = 4e-6
"""Shortest kernel."""
HOST_SECONDS = 12e-6
"""Host time per launched op: a bert-base forward is launch-bound at 4.2 ms beside an A100 and 11 ms beside a T4."""
CRF_LAUNCHES = 24
"""Launches per token position of a CRF's loss and its backward."""
LOW, HIGH = 0.7, 1.7
"""The range around the estimate, as factors of time."""


@dataclass(frozen=True)
class Seconds:
    """Predicted seconds."""

    middle: float
    low: float
    high: float

    def times(self, factor: float) -> Seconds:
        return Seconds(self.middle * factor, self.low * factor, self.high * factor)


def tensor_rate(card: Card, dtype: str) -> float:
    """Floating-point operations a second at the dense peak."""
    rate = {"float16": card.fp16_tflops, "bfloat16": card.bf16_tflops}.get(dtype, card.fp32_tflops)
    # bf16 that is not in hardware is emulated in fp32, and converted on both sides.
    return (rate or card.fp32_tflops / 2) * 1e12


def pass_seconds(template: Template, shapes: list[Shape], card: Card, *, crf: bool = False) -> np.ndarray:
    """Seconds of a forward+backward pass of each shape, (S,)."""
    base = template.base
    batch = np.array([s[0] for s in shapes], np.float64)[:, None]
    length = np.array([s[1] for s in shapes], np.float64)[:, None]
    groups = template.groups
    count = np.array([g.count for g in groups])
    powers = np.array([g.powers for g in groups])
    grown = (batch / base[0]) ** powers[:, 0] * (length / base[1]) ** powers[:, 1]
    tokens = batch * length
    rate = np.array([tensor_rate(card, g.dtype) for g in groups])
    attention = np.array([g.attention for g in groups])
    filled = tokens / (tokens + TOKENS_PER_TFLOPS * rate / 1e12)
    speed = rate * np.where(attention, ATTENTION_EFFICIENCY, GEMM_EFFICIENCY) * filled
    arithmetic = np.array([g.flops for g in groups]) * grown / speed
    moved = np.array([g.moved_bytes for g in groups]) * grown + np.array([g.moved_fixed_bytes for g in groups])
    transfer = moved / (card.bandwidth_bytes_per_second * BANDWIDTH_EFFICIENCY)
    on_card = (np.maximum(np.maximum(arithmetic, transfer), KERNEL_SECONDS) * count).sum(1)
    seconds = np.maximum(on_card, count.sum() * HOST_SECONDS)
    if crf:
        seconds = seconds + length[:, 0] * CRF_LAUNCHES * HOST_SECONDS
    return seconds


def optimizer_seconds(template: Template, fit: Fit, card: Card) -> float:
    """Clipping and update of every step: bytes of weights, gradients and states."""
    per_parameter = {"adamw_8bit": 16, "adafactor": 20, "sgd": 12}.get(fit.optimizer, 28) + 12
    launches = {"adamw_loop": 12 * template.tensors}.get(fit.optimizer, 40)
    moved = per_parameter * template.parameters / (card.bandwidth_bytes_per_second * BANDWIDTH_EFFICIENCY)
    return moved + launches * HOST_SECONDS


def epoch_seconds(
    template: Template, fit: Fit, card: Card, shapes: Counter[Shape], steps: int, dev_share: float, *, crf: bool = False
) -> Seconds:
    """One epoch with its evaluation. ``dev_share``: tokens of the development set per training token; an evaluation
    is a forward pass, a third of a training pass."""
    each = pass_seconds(template, list(shapes), card, crf=crf)
    passes = float((each * np.array(list(shapes.values()))).sum())
    middle = passes * (1 + dev_share / 3) + steps * optimizer_seconds(template, fit, card)
    return Seconds(middle, middle * LOW, middle * HIGH)
