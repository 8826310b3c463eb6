"""The metric is undefined: a class was never predicted

## What it says

`UndefinedMetricWarning: Precision is ill-defined and being set to 0.0`.

## Why

The model predicts one class only (common in the first evaluation), or the development set lacks a class.

## How to know

When the warning is still there after the last epoch, look at the counts per class.

## How to fix

Wait for the next evaluation; if it stays, check the split (`fitune check`) and the learning rate.

## How safe

Only shown.

## Sources

https://scikit-learn.org/stable/modules/model_evaluation.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "note"
PATTERNS = (r"(?:Precision|Recall|F-score)[\w ,and-]* (?:is|are) ill-defined",)


def read(log: Log) -> Iterator[Symptom]:
    """The metric is undefined, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.6)
