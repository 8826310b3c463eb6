"""The training loss rises: training diverges

## What it says

The loss fell first and then climbed back, or jumped to where it started and stays there.

## Why

A learning rate too high, no warm-up, or one broken batch; on small sets BERT sometimes collapses to one class.

## How to know

The loss of the last steps is more than twice its lowest.

## How to fix

Lower the learning rate (2e-5), keep warm-up (`warmup_fraction=0.1`) and clipping (`max_grad_norm=1`), and start
again from the best checkpoint; another seed tells bad luck from a bad setting.

## How safe

Unsafe: learning choices.

## Sources

huggingface/transformers#11327
"""

from collections.abc import Iterator

from fitune.doctor.history import History
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "unsafe"
SETTINGS = {"learning_rate": 2e-05}


def watch(history: History) -> Iterator[Symptom]:
    """The smoothed loss ends far above its lowest."""
    course = history.smoothed_losses()
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
