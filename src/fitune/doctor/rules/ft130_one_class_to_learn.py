"""There is one class only

## What it says

`there is one class only`: `fitune train` and `fitune baseline` do not begin.

## Why

Every training row has the same label: always giving it would be perfect, on rows that say nothing.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Give rows of at least two classes.

## How safe

Safe.

## Sources

fitune: training ; fitune: tasks
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (r"needs samples of at least 2 classes|Only one class (?:is )?present in y_true",)


def read(log: Log) -> Iterator[Symptom]:
    """A learner or a score that wants two classes, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
