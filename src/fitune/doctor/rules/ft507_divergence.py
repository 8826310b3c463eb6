"""The training loss rises: training diverges

## What it says

The loss fell first and then climbed back, or jumped to where it started and stays there; or a score that was
good falls to that of guessing.

## Why

A learning rate too high, no warm-up, or one broken batch; on small sets BERT sometimes collapses to one class.

## How to know

The loss of the last steps is more than twice its lowest, or the last score is less than half of the best.

## How to fix

Lower the learning rate (2e-5), keep warm-up (`warmup_fraction=0.1`) and clipping (`max_grad_norm=1`), and start
again from the best checkpoint; another seed tells bad luck from a bad setting.

## How safe

Unsafe: learning choices.

## Sources

huggingface/transformers#11327
"""

import re
from collections.abc import Iterator

from fitune.doctor.history import History
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
SAFETY = "unsafe"
SETTINGS = {"learning_rate": 2e-05}

# Scores of several trainings beside each other are no course.
_SEVERAL = re.compile(r"\b(?:fold|trial|seed|run)\b|折|种子", re.IGNORECASE)


def watch(history: History) -> Iterator[Symptom]:
    """The smoothed loss ends far above its lowest, or the score far below its best."""
    name, readings = history.metric
    scores = history.scores
    several = any(_SEVERAL.search(reading.evidence.split(": ", 1)[-1]) for reading in readings)
    course = history.smoothed_losses()
    # A score that jumps to and fro while the loss stands still: nothing was learned that could be lost (FT508).
    learned = len(course) < 2 or max(course) - min(course) > 0.05 * max(course)
    whole = learned and len(scores) == len(readings) >= 2
    if whole and not several and max(scores) > 0.3 and scores[-1] < 0.5 * max(scores):
        title = _("The score {name} collapses: training diverges", name=name.removeprefix("eval_"))
        best, last = readings[scores.index(max(scores))], readings[-1]
        yield Symptom(evidence=(best.evidence, last.evidence), title=title, confidence=0.84, line=last.line)
    if len(course) < 5 or len(history.losses) < 8:
        return
    lowest = min(course)
    if (
        course.index(lowest) < len(course) - 1
        and course[-1] > 2 * lowest
        and course[-1] > lowest + 0.3
        and course[-2] > 1.5 * lowest
    ):
        worst = min((r for r in history.losses if r.finite), key=lambda r: r.value)
        yield Symptom(
            evidence=(worst.evidence, history.losses[-1].evidence), confidence=0.85, line=history.losses[-1].line
        )
