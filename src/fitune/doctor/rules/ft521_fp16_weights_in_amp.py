"""The weights themselves are fp16 under mixed precision

## What it says

`ValueError: Attempting to unscale FP16 gradients.`

## Why

The model was loaded with `torch_dtype=torch.float16` (or `dtype="auto"` from an fp16 checkpoint), while
`fp16=True` needs fp32 weights.

## How to know

`next(model.parameters()).dtype` is float16.

## How to fix

Load the weights in fp32 (`dtype=torch.float32`) and keep `fp16=True`.

## How safe

Rounding, for the better.

## Sources

huggingface/peft#341 ; https://docs.pytorch.org/docs/stable/amp.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"mat1 and mat2 must have the same dtype|expected m1 and m2 to have the same dtype",
    r"Attempting to unscale FP16 gradients",
)


def read(log: Log) -> Iterator[Symptom]:
    """The weights themselves are fp16 under mixed precision, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.98)
