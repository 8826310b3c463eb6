"""The weights cannot be saved: tensors share memory or are not contiguous

## What it says

`Some tensors share memory, this will lead to duplicate memory on disk`, or `You are trying to save a non
contiguous tensor`.

## Why

safetensors stores every tensor once and in order. Two names point to one tensor (tied embeddings that the model's
class does not declare), or a tensor is a transposed view.

## How to know

The message lists the names.

## How to fix

Before saving, `for p in model.parameters(): p.data = p.data.contiguous()`; for shared tensors use
`safetensors.torch.save_model(model, path)`, or declare them in the class (`_tied_weights_keys`).

## How safe

Safe: the numbers stay the same.

## Sources

https://huggingface.co/docs/safetensors/torch_shared_tensors
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (r"Some tensors share memory|save a non[- ]contiguous tensor|tensors share memory, this will lead to",)


def read(log: Log) -> Iterator[Symptom]:
    """The weights cannot be saved as they are, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
