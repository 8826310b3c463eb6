"""A label number is outside the classes of the model

## What it says

`Target 9 is out of bounds`, or on a card ``Assertion `t >= 0 && t < n_classes` failed`` followed by
`device-side assert triggered`.

## Why

`num_labels` is smaller than the largest label + 1: labels start at 1, or have gaps, -1 marks "unlabelled", or
the label list lacks some that the data has.

## How to know

On the CPU the message names the label. `max(labels)` against `model.config.num_labels`.

## How to fix

Map the labels to 0..n-1 and load the model with `num_labels=len(label_list)`; fitune reads the list from the
data. Restart Python after a device-side assert.

## How safe

Safe.

## Sources

huggingface/transformers#5611 ; pytorch/pytorch#1204
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"Class values must be non-negative|Received a label value of -?\d+ which is outside the valid range"
    r"|Target \d+ is out of (?:bounds|upper bound)",
    r"IndexError: Target -?\d+ is out of bounds|index -100 is out of bounds",
    r"Assertion `?t ?>= ?0 ?&& ?t ?< ?n_classes",
    r"cur_target ?>= ?0 ?&& ?cur_target ?< ?n_classes|Assertion.*target_val|multi_margin.*Assertion"
    r"|nll_loss\S*\.cu.*Assertion|ClassNLLCriterion",
    r"Class values must be smaller than num_classes|Label values must be non-negative",
)


def read(log: Log) -> Iterator[Symptom]:
    """The assertion or the index, with the late echo on the card."""
    if hits := log.find(*PATTERNS):
        yield symptom(hits + log.find(r"device-side assert triggered"), confidence=0.98)
