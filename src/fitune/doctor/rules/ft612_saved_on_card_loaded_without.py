"""A file saved on a card is loaded where there is none

## What it says

`Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False`.

## Why

`torch.load` puts tensors back where they were.

## How to know

`torch.cuda.is_available()` is False here; when there is a card, see `fitune doctor`.

## How to fix

Load with `torch.load(path, map_location="cpu")`.

## How safe

Safe.

## Sources

https://docs.pytorch.org/docs/stable/generated/torch.load.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (r"Attempting to deserialize object on (?:a )?CUDA device",)


def read(log: Log) -> Iterator[Symptom]:
    """A file saved on a card is loaded where there is none, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
