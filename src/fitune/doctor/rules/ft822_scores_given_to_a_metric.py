"""A metric was given scores where it wants classes

## What it says

`Classification metrics can't handle a mix of multiclass and continuous-multioutput targets` (or of binary and
continuous, multilabel and multiclass).

## Why

`compute_metrics` gets the logits, one number per class; the metric wants one class per text. For several labels
per text it wants 0 and 1 on both sides.

## How to know

`print(predictions.shape, labels.shape)` at the start of `compute_metrics`.

## How to fix

One class per text: `predictions = logits.argmax(-1)`. Several labels per text: `predictions = (logits >
0).astype(int)`. `fitune train` computes all of this itself.

## How safe

Safe: only the report changes.

## Sources

https://scikit-learn.org/stable/modules/model_evaluation.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"multi_class must be in \('ovo', 'ovr'\)|y_score.*must be|Target scores need to be probabilities",
    r"Predictions and/or references don't match the expected format|'tuple' object has no attribute '(?:argmax"
    r"|shape|predictions|ndim|cpu)'",
    r"y_true and y_pred have different number of output|The requested array has an inhomogeneous shape"
    r"|axis 2 is out of bounds for array",
    r"Classification metrics can't handle a mix of|(?:continuous|unknown"
    r"|multiclass-multioutput)(?:-multioutput)? (?:format )?is not supported",
    r"Found input variables with inconsistent numbers of samples: \[\d+, \d+\]"
    r"|y should be a 1d array, got an array of shape",
)


def read(log: Log) -> Iterator[Symptom]:
    """A metric was given scores where it wants classes, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
