"""The saved head has another number of labels

## What it says

`size mismatch for classifier.weight: copying a param with shape torch.Size([2, 768]) ... the shape in current
model is torch.Size([9, 768])`.

## Why

The checkpoint was trained with another label set than `num_labels` says. When the word embeddings are named, that is
FT705: tokenizer, configuration and weights are not of one model.

## How to know

The first number of each shape is the number of labels.

## How to fix

Load with the labels of the checkpoint, or start a new head with `ignore_mismatched_sizes=True`; fitune keeps
the labels with the model and takes over those that both have.

## How safe

A new head has to be learned again.

## Sources

huggingface/transformers#20327 ; ThilinaRajapakse/simpletransformers#255
"""

from collections.abc import Iterator

from fitune.doctor.load_report import vocabulary_differs
from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PERSISTS = True
PATTERNS = (
    r"size mismatch for (\S+):",
    r"Error\(s\) in loading state_dict for",
    r"ignore_mismatched_sizes=True|Reinit due to size mismatch|did not match: (?:\[|found shape)"
    r"|newly initialized because the shapes did not match",
)


def read(log: Log) -> Iterator[Symptom]:
    """The saved head has another number of labels, seen in a log."""
    renamed = log.has(r"Missing key\(s\) in state_dict") and not log.has(PATTERNS[0])
    if not renamed and not vocabulary_differs(log):
        yield from matches(log, PATTERNS, confidence=0.95)
