"""A class has too few rows for a stratified split

## What it says

`The least populated class in y has only 1 member`.

## Why

`train_test_split(..., stratify=...)` needs at least two rows of every class, and one for each side.

## How to know

`Counter(labels)` shows the class; often it is a typing error in a label.

## How to fix

Look at the rare labels first (`fitune check FILE` lists them), mend typing errors, and give classes with a
single row to the training side; fitune does.

## How safe

Safe.

## Sources

https://scikit-learn.org/stable/modules/generated/sklearn.model_selection.train_test_split.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"(?:test|train)_size = \d+ should be greater or equal to the number of classes",
    r"least populated class in y has only \d+ member",
)


def read(log: Log) -> Iterator[Symptom]:
    """A class has too few rows for a stratified split, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
