"""The data has a label that the label list does not know

## What it says

`KeyError: 'B-address'` in `label2id[...]`, or `invalid literal for int() with base 10: '正面'`.

## Why

The list in the script was copied from a post and belongs to another data set, or a label has a typing error.

## How to know

The key in the message is the label.

## How to fix

Build the list from the data: `labels = ["O"] + sorted({...})`; `fitune check FILE` prints it with counts.

## How safe

Safe.

## Sources

CLUEbenchmark/CLUENER2020
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches, symptom
from fitune.doctor.raised import find_raised, missing_key
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
COMMAND = "fitune check FILE"
PATTERNS = (
    r"y contains previously unseen labels",
    r"^\s*KeyError: ['\x22](?:[BIESMLU]-[^'\x22]+|[BIO]|[A-Z]{2,5}-[BIESM])['\x22]",
    r"ValueError: ['\x22](?:[BIESMLU]-[^'\x22]+|[BIO])['\x22] is not in (?:list|tuple)",
    r"in get_idx_for_item",
    r"invalid literal for int\(\) with base 10: ['\x22](?!\d)\D+['\x22]",
)


def read(log: Log) -> Iterator[Symptom]:
    """The data has a label that the label list does not know, seen in a log."""
    raised = find_raised(log)
    kind = missing_key(raised) if raised else ""
    if raised and kind == "label":
        yield symptom([raised.hit], confidence=0.95 if raised.frames else 0.7)
    elif not kind:
        yield from matches(log, PATTERNS, confidence=0.92)
