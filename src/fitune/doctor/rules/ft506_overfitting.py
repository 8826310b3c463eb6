"""The model learns the training rows by heart

## What it says

The loss on the development rows rises while the training loss goes on falling, and the score does not get
better.

## Why

Too many epochs for so few rows, or a development set unlike the training rows.

## How to know

The best evaluation lies several evaluations back.

## How to fix

Keep the best model and stop early (`patience=2`, or `EarlyStoppingCallback` with
`load_best_model_at_end=True`); more rows help more than any setting.

## How safe

Unsafe: fewer epochs give another model, usually a better one.

## Sources

https://huggingface.co/docs/transformers/main_classes/callback
"""

from collections.abc import Iterator

from fitune.doctor.history import History
from fitune.doctor.symptom import Symptom

SEVERITY = "warning"
SAFETY = "unsafe"
SETTINGS = {"patience": 2}


def watch(history: History) -> Iterator[Symptom]:
    """Development loss well above its minimum for two evaluations or more, training loss lower, score not better."""
    course = history.evaluation_losses
    if len(course) < 3:
        return
    lowest = min(range(len(course)), key=lambda i: course[i].value)
    last = course[-1]
    if (
        len(course) - 1 - lowest < 2
        or last.value < 1.3 * course[lowest].value
        or last.value - course[lowest].value < 0.05
    ):
        return
    before = [r.value for r in history.losses if r.line <= course[lowest].line and r.finite]
    after = [r.value for r in history.losses if r.line > course[lowest].line and r.finite]
    if before and after and after[-1] > 0.8 * before[-1]:
        return
    scores = history.scores
    if len(scores) == len(course) and scores[-1] > scores[lowest] + 0.003:
        return
    yield Symptom(evidence=(course[lowest].evidence, last.evidence), confidence=0.85, line=last.line)
