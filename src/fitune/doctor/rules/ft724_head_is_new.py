"""The new head is not in the checkpoint: expected

## What it says

`Some weights of ... were not initialized ... newly initialized: ['classifier.bias', 'classifier.weight']`, or
`were not used: ['cls.predictions...']`.

## Why

The pretrained model has a head for another task; yours starts from random numbers and is learned now.

## How to know

Only classifier, score, CRF, pooler or `cls.*` weights are named.

## How to fix

Nothing to do. When you meant to load a model that is already trained, give the folder of that model.

## How safe

Only shown.

## Sources

huggingface/transformers#5421
"""

from collections.abc import Iterator

from fitune.doctor.load_report import find_load_report
from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "note"


def read(log: Log) -> Iterator[Symptom]:
    """Loading reports in which heads alone are named."""
    report = find_load_report(log)
    if report is not None and not report.encoder_names:
        yield symptom(report.hits, confidence=0.8)
