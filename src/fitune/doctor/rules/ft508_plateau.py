"""The loss stands still: nothing more is learned

## What it says

The training loss has not moved for more than half of the run, and the score is low.

## Why

A learning rate too low (or already zero), frozen layers, labels that do not follow from the texts, or a model
that predicts one class.

## How to know

Loss near ln(number of classes) means guessing.

## How to fix

Check the labels on ten rows (`fitune check FILE`), then try a higher learning rate (5e-5) and see that nothing
is frozen.

## How safe

Unsafe: learning choices.

## Sources

https://huggingface.co/docs/transformers/training
"""

import math
from collections.abc import Iterator

from fitune.doctor.history import History, mean
from fitune.doctor.symptom import Symptom

SEVERITY = "warning"
SAFETY = "unsafe"


def watch(history: History) -> Iterator[Symptom]:
    """Flat for the last 60 % of the readings, with a high loss and a low score."""
    course = history.smoothed_losses()
    if _same_at_every_epoch(history):
        evidence = (history.losses[0].evidence, history.losses[-1].evidence)
        yield Symptom(evidence=evidence, confidence=0.75, line=history.losses[-1].line)
        return
    if len(course) < 8 or len(history.losses) < 12:
        return
    tail = course[len(course) * 2 // 5 :]
    best = max(history.scores, default=0.0)
    # F1 of two classes is 0.67 for a model that says yes to everything.
    guessing = any(abs(mean(tail) / math.log(classes) - 1) < 0.02 for classes in (2, 3, 4, 5))
    if max(tail) - min(tail) < 0.03 * max(tail) and min(tail) > 0.4 and best < (0.7 if guessing else 0.6):
        yield Symptom(
            evidence=(history.losses[len(history.losses) * 2 // 5].evidence, history.losses[-1].evidence),
            confidence=0.75,
            line=history.losses[-1].line,
        )


def _same_at_every_epoch(history: History) -> bool:
    """One loss an epoch, four epochs or more: neither it nor the score moves, and the score is low."""
    losses, scores = [reading.value for reading in history.losses if reading.finite], history.scores
    if len(scores) < 4 or not 4 <= len(losses) <= len(scores) + 1:
        return False
    flat = max(losses[1:]) - min(losses[1:]) < 0.03 * max(losses[1:]) and losses[-1] > 0.4
    return flat and max(scores[1:]) - min(scores[1:]) < 0.005 and max(scores) < 0.6
