"""The precision that was asked for does not suit this machine

## What it says

`Your setup doesn't support bf16/gpu`, `bf16 is not supported`, `Current CUDA Device does not support bfloat16`.
Of fitune: `fp16 is slow on this machine`.

## Why

bf16 needs an Ampere card (RTX 30, A10, A100) or newer; T4, V100, RTX 20 and GTX have none in hardware. Most CPUs
compute neither fp16 nor bf16 themselves: they convert, and a step takes several times as long as in fp32.

## How to know

The card's compute capability is below 8.0; or fitune's own measurement before the first step, which it quotes.

## How to fix

Use `fp16=True` instead of `bf16=True` on T4, V100 and RTX 20; fitune picks the precision from the card. On a CPU leave
`--precision` out, or type `--precision fp32`.

## How safe

Rounding: fp16 has a smaller range, the loss scaler takes care of it.

## Sources

unslothai/unsloth#2783 ; https://docs.nvidia.com/cuda/cuda-c-programming-guide/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
SETTINGS = {"precision": "fp16"}
PATTERNS = (
    r"--tf32 requires Ampere|FP16 is enabled but the device does not support",
    r"Your setup doesn'?t support bf16/gpu",
    r"(?:bf16|bfloat16) (?:is )?(?:not supported|mixed precision requires)|does not support bf(?:loat)?16"
    r"|Bfloat16 is only supported on GPUs",
)


def read(log: Log) -> Iterator[Symptom]:
    """The precision that was asked for does not suit this machine, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
