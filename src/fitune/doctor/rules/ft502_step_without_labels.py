"""A step has no label at all

## What it says

Every label of the step is -100.

## Why

The collator or the data gives nothing to learn from.

## How to know

The message names the step; the run's events.jsonl holds all of them.

## How to fix

Look at the labels that your collator gives.

## How safe

Safe: nothing was learned from it.

## Sources

fitune: hf/trainer
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (r"all (?:the )?labels (?:in \w+ \w+ )?(?:are|were) (?:ignored|-100|masked)|no (?:valid|active) labels in",)


def read(log: Log) -> Iterator[Symptom]:
    """A script that noticed it itself."""
    yield from matches(log, PATTERNS, confidence=0.97)
