"""The learning rate does not suit this model

## What it says

The loss hardly moves from the first step on, and the learning rate is far from what fine-tuning an encoder
wants.

## Why

Above about 2e-4 a pretrained encoder forgets what it knew and predicts one class; below about 2e-6 it hardly
learns.

## How to know

The peak learning rate in the log, and a flat loss.

## How to fix

Set `learning_rate=3e-5` (base models) or 1e-5 (large ones), with 10 % warm-up; a CRF or new head may take 1e-3
by itself.

## How safe

Unsafe: a learning choice.

## Sources

https://huggingface.co/docs/transformers/training ; https://arxiv.org/abs/1810.04805
"""

from collections.abc import Iterator

from fitune.doctor.history import History
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "warning"
SAFETY = "unsafe"
SETTINGS = {"learning_rate": 3e-05}


def watch(history: History) -> Iterator[Symptom]:
    """A flat loss beside a peak rate outside [2e-6, 2e-4]."""
    rate, course = history.peak_learning_rate, history.smoothed_losses()
    if rate is None or len(course) < 4 or rate <= 0 or 2e-6 <= rate <= 2e-4:
        return
    if course[-1] > 0.85 * course[0]:
        shown = f"{rate:g}"
        title = (
            _("The learning rate {rate} is too high for an encoder", rate=shown)
            if rate > 2e-4
            else _("The learning rate {rate} is too low to learn anything", rate=shown)
        )
        yield Symptom(
            evidence=(history.losses[0].evidence, history.losses[-1].evidence),
            title=title,
            confidence=0.9,
            line=history.losses[-1].line,
        )
