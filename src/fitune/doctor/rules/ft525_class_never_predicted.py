"""The metric is undefined: a class was never predicted

## What it says

`UndefinedMetricWarning: Precision is ill-defined and being set to 0.0`; or every F1 of the log is 0.

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

from fitune.doctor.log import Log, matches, symptom
from fitune.doctor.raised import find_raised
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "note"
PATTERNS = (r"(?:Precision|Recall|F-score)[\w ,and-]* (?:is|are) ill-defined",)
F1 = r"(?<![\w.])[a-z_]*(?:f1|F1)(?:[-_ ]?score)?['\"]?\s*[:=]\s*['\"]?(\d+(?:\.\d+)?)(?![\d.]*\w)"
ENDED = r"train_runtime|eval_runtime|Training completed|\*\*\*\*\* eval metrics|训练(?:完成|结束)"


def read(log: Log) -> Iterator[Symptom]:
    """The metric is undefined, seen in a log; or nothing was found in any of its evaluations, to the end."""
    readings = log.find(F1)
    nothing = bool(readings) and all(float(hit.match[1]) == 0 for hit in readings)
    if nothing and (len(readings) > 2 or log.has(ENDED)) and find_raised(log) is None:
        title = _("F1 is 0 in every evaluation: the model predicts one class alone, or the metric reads other labels")
        yield symptom(readings, confidence=0.7, title=title, severity="warning")
    else:
        yield from matches(log, PATTERNS, confidence=0.6)
