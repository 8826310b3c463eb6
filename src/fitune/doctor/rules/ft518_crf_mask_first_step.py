"""The CRF is given a mask whose first step is off

## What it says

`mask of the first timestep must all be on`.

## Why

The mask leaves out [CLS] (label -100), and pytorch-crf wants the first position to count.

## How to know

The traceback ends in `torchcrf`.

## How to fix

Cut the first position off everything, `emissions[:, 1:], tags[:, 1:], mask[:, 1:]`; fitune's CRF takes any
mask.

## How safe

Safe: [CLS] carries no label.

## Sources

kmkurn/pytorch-crf#110 ; #46 ; #61
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (r"mask of the first timestep must all be on",)


def read(log: Log) -> Iterator[Symptom]:
    """The CRF is given a mask whose first step is off, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.98)
