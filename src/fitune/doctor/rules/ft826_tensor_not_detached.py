"""A tensor was used outside of the step it belongs to

## What it says

`Can't call numpy() on Tensor that requires grad`, `can't convert cuda:0 device type tensor to numpy`, `Trying
to backward through the graph a second time`.

## Why

numpy reads only host memory without gradients; and the graph of a step is freed by its backward pass, so a loss
or a hidden state kept from an earlier step cannot be used again.

## How to know

The last own line of the traceback names the tensor.

## How to fix

For numbers to print or score: `tensor.detach().cpu().numpy()`, `loss.item()`. For two backward passes: compute
the loss anew in each step, and keep nothing but `loss.item()`.

## How safe

Safe.

## Sources

https://docs.pytorch.org/docs/stable/notes/autograd.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"modified by an inplace operation|support the deepcopy protocol"
    r"|leaf Variable that requires grad (?:is being used in|has been used in) an? in-?place",
    r"grad can be implicitly created only for scalar outputs"
    r"|only one element tensors can be converted to Python scalars"
    r"|Output 0 of \w+ is a view and is being modified inplace",
    r"Can't call numpy\(\) on Tensor that requires grad|can't convert \S+ device type tensor to numpy",
    r"Trying to backward through the graph a second time",
)


def read(log: Log) -> Iterator[Symptom]:
    """A tensor was used outside of the step it belongs to, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
