"""Tensors lie on different devices

## What it says

`Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!`

## Why

The model was moved and the inputs were not (or the reverse), or an own loss weight stays on the CPU.

## How to know

The traceback's last own line shows which tensor.

## How to fix

Move both: `inputs = {k: v.to(model.device) for k, v in inputs.items()}`; register own tensors with
`register_buffer`. The Trainer moves them itself.

## How safe

Safe.

## Sources

https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"indices should be either on cpu or on the same device",
    r"on the expected device meta|Cannot copy out of meta tensor",
    r"'lengths' argument should be a 1D CPU",
    r"arguments are located on different GPUs",
    r"cannot pin 'torch\.cuda",
    r"Placeholder storage has not been allocated on MPS device|must be on the (?:current|same) device",
    r"module must have its parameters and buffers on device|Expected object of device type"
    r"|Tensor for argument #\d.* is on CPU",
    r"Pointer argument \(at \d+\) cannot be accessed from Triton"
    r"|should be the same or input should be a MKLDNN tensor|Expected a '?cuda'? device type for generator",
    r"Expected all tensors to be on the same device",
    r"Input type \(.*\) and weight type \(.*\) should be the same",
    r"found at least two devices",
)


def read(log: Log) -> Iterator[Symptom]:
    """Tensors lie on different devices, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
