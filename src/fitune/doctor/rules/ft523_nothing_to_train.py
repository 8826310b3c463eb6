"""Nothing requires a gradient

## What it says

`element 0 of tensors does not require grad and does not have a grad_fn`.

## Why

All parameters are frozen, the forward pass runs under `no_grad`, or checkpointing is on with frozen embeddings.

## How to know

`sum(p.requires_grad for p in model.parameters())` is 0.

## How to fix

Unfreeze the head, remove `torch.no_grad()`, or call `model.enable_input_require_grads()` with checkpointing or
LoRA.

## How safe

Safe.

## Sources

https://docs.pytorch.org/docs/stable/notes/autograd.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"No inf checks were recorded for this optimizer",
    r"element 0 of tensors does not require grad|optimizer got an empty parameter list",
)


def read(log: Log) -> Iterator[Symptom]:
    """Nothing requires a gradient, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)
