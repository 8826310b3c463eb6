"""The metric sees labels that are not entity tags

## What it says

`UserWarning: LABEL_3 seems not to be NE tag`, or bare types without B-/I-.

## Why

seqeval was given numbers, LABEL_n or bare types; the score that comes out is not the entity F1.

## How to know

The warning quotes the label.

## How to fix

Load the model with `id2label`/`label2id`, and map ids to B-/I- tags before scoring, with an explicit scheme:
`mode="strict", scheme=IOB2`.

## How safe

Safe: only the score changes.

## Sources

chakki-works/seqeval#23 ; #71
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "warning"
PERSISTS = True
PATTERNS = (r"seems not to be NE tag",)
CRASH = (
    r"Invalid token is found: |'int' object has no attribute 'startswith'",
    r"Found input variables without list of list",
)


def read(log: Log) -> Iterator[Symptom]:
    """The metric sees labels that are not entity tags, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9)
    yield from matches(log, CRASH, confidence=0.93, severity="error")
