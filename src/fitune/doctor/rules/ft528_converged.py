"""It has converged

## What it says

The last evaluations hardly differ, and the best is among them.

## Why

More training of the same kind would change little.

## How to know

Three evaluations within half a point of each other.

## How to fix

Nothing to do: take the best model. More rows, or a larger model, would be the next step.

## How safe

Only shown.

## Sources

https://huggingface.co/docs/transformers/main_classes/callback
"""

from collections.abc import Iterator

from fitune.doctor.history import History
from fitune.doctor.symptom import Symptom

SEVERITY = "note"


def watch(history: History) -> Iterator[Symptom]:
    """Three evaluations within half a point, at the top."""
    _name, scores = history.metric
    values = history.scores
    if (
        len(values) >= 3
        and max(values[-3:]) - min(values[-3:]) < 0.005
        and max(values) - max(values[-3:]) < 0.003
        and values[-1] > 0.3
    ):
        yield Symptom(evidence=tuple(reading.evidence for reading in scores[-3:]), confidence=0.8, line=scores[-1].line)
