"""Out of memory late in training: one long batch

## What it says

Training ran for many steps, then one step asked for more memory than all before it.

## Why

Batches are padded to their longest text: one long text makes one batch several times larger than the average.

## How to know

The progress bar stands far from the start, and memory did not grow step by step before (that would be FT311).

## How to fix

Bound tokens instead of rows per pass: `fitune train` does, and tries the longest batch before step 1. In a
script split long texts or set `max_length` with `group_by_length`.

## How safe

Exact when only the micro-batch is split; cutting texts off with `max_length` loses data.

## Sources

huggingface/transformers#11848 ; luca-medeiros/lightning-sam#54
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"


def read(log: Log) -> Iterator[Symptom]:
    """Out of memory in training after many steps."""
    oom = find_oom(log)
    if oom is None or oom.step is None or oom.step < 20 or oom.resumed:
        return
    if oom.frames(log, r"in evaluation_loop|in evaluate\b|in prediction_step|in predict\b"):
        return
    title = _("Out of memory after {step} steps: one long batch", step=oom.step)
    yield symptom(oom.hits, confidence=0.6 if oom.growing else 0.87, title=title)
