"""Some rows have no labels

## What it says

Some rows have a text and no label, or no entities' key at all; the others do. How many, and where the first ones are.

## Why

They are left out: nothing is trained on them and they are not scored. A row whose list of entities is there and empty
is something else: it says that the text has none, and is trained on. Training goes on with the rows that are left.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Label them, or take them out of the file. `fitune predict RUN FILE` labels them later, for you to correct.

## How safe

Safe.

## Sources

fitune: data/checking
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "warning"
PATTERNS = (
    r"must be real number, not NoneType",
    r"cannot convert float NaN to integer|IntCastingNaNError|Cannot convert non-finite values|Input y contains NaN",
)


def read(log: Log) -> Iterator[Symptom]:
    """An empty cell where a class number is wanted, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9, severity="error")
