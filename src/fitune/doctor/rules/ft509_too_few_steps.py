"""It was still getting better when it ended: too few steps

## What it says

The last evaluation was clearly the best, and the training loss was still falling.

## Why

Few epochs, few rows, or a deadline that came first.

## How to know

The score rose by more than one point from the last but one evaluation to the last.

## How to fix

Train longer: raise `epochs` and let early stopping find the end (`patience=2`).

## How safe

Unsafe: more epochs give another model.

## Sources

https://huggingface.co/docs/transformers/main_classes/callback
"""

from collections.abc import Iterator

from fitune.doctor.history import History
from fitune.doctor.symptom import Symptom

SEVERITY = "note"
SAFETY = "unsafe"
UNFINISHED = {"early_stop", "failed", "interrupted"}
LOW_SCORE = 0.6
STEEP = 0.93
"""Of the loss that a tenth of the training leaves."""


def watch(history: History) -> Iterator[Symptom]:
    """The last evaluation is the best by a point or more, and the loss still falls."""
    _name, scores = history.metric
    course = history.smoothed_losses()
    if len(scores) == 1 and len(course) >= 4 and history.scores and history.stopped not in UNFINISHED:
        # One evaluation shows no trend; a loss that falls steeply to the last step does.
        if history.scores[0] < LOW_SCORE and course[-1] < STEEP * course[-2] < STEEP**2 * course[-3]:
            evidence = (history.losses[-1].evidence, scores[0].evidence)
            yield Symptom(evidence=evidence, confidence=0.6, line=scores[0].line)
        return
    values = history.scores
    # Three epochs are what posts do: three evaluations that climb steeply say it, too.
    steep = len(values) >= 3 and len(course) == 3 and values[-1] - values[-2] > 0.05
    if len(scores) < 2 or (len(course) < 4 and not steep) or history.stopped in UNFINISHED:
        return
    if (
        len(values) == len(scores)
        and values[-1] == max(values)
        and values[-1] - values[-2] > 0.01
        and course[-1] < 0.95 * course[-2]
    ):
        yield Symptom(
            evidence=(scores[-2].evidence, scores[-1].evidence),
            confidence=0.7,
            line=scores[-1].line,
            severity="warning" if history.own_run else None,
        )
