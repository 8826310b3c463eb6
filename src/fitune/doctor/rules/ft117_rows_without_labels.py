"""Some rows have no labels

## What it says

The others do.

## Why

They are neither trained on nor scored.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Label them, or keep them for prediction.

## How safe

Safe.

## Sources

fitune: data/checking
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "note"
PATTERNS = (
    r"must be real number, not NoneType",
    r"cannot convert float NaN to integer|IntCastingNaNError|Cannot convert non-finite values|Input y contains NaN",
)


def read(log: Log) -> Iterator[Symptom]:
    """An empty cell where a class number is wanted, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9, severity="error")
