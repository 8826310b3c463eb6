"""There are no rows to train on

## What it says

`num_samples should be a positive integer value, but got num_samples=0`, `With n_samples=0`, `Trainer: training
requires a train_dataset`.

## Why

The file is empty, every row was filtered out, or the reader looked for other columns or another separator and
skipped all.

## How to know

`print(len(dataset))` after each step of the preparation; `fitune check FILE` says how many rows were read and
why others were not.

## How to fix

Type `fitune check FILE`, and mend the path, the column names or the filter that it shows.

## How safe

Safe.

## Sources

https://docs.pytorch.org/docs/stable/data.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"requires at least one training batch|stack expects a non-empty TensorList",
    r"got num_samples=0|With n_samples=0,|Found array with 0 sample|training requires a train_dataset",
)


def read(log: Log) -> Iterator[Symptom]:
    """There are no rows to train on, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)
