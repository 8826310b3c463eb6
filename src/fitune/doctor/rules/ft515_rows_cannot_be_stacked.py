"""Rows of different lengths cannot become one tensor

## What it says

`Unable to create tensor, you should probably activate truncation and/or padding`, `expected sequence of length
37 at dim 1 (got 52)`, `too many dimensions 'str'`.

## Why

The collator does not pad: no tokenizer was given to the Trainer, labels per token are padded by nobody, or text
columns were left in (`remove_unused_columns=False`).

## How to know

The message names the feature that is nested too deeply.

## How to fix

Give the Trainer `data_collator=DataCollatorForTokenClassification(tokenizer)` (texts:
`DataCollatorWithPadding`), and drop text columns with `remove_columns=` in `map`.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/main_classes/data_collator
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
PATTERNS = (
    r"Could not infer dtype of (?:NoneType|dict|str|\w*Encoding)"
    r"|each element in list of batch should be of equal size|setting an array element with a sequence.*tensor",
    r"must be real number, not (?:list|dict|str|tuple|\w*Encoding|Image)"
    r"|expected Tensor as element \d+ in argument \d+, but got (?:list|str|dict)"
    r"|only integer tensors of a single element can be converted to an index",
    r"batch must contain tensors, numpy arrays, numbers, dicts or lists",
    r"Unable to create tensor, you should probably activate truncation",
    r"expected sequence of length \d+ at dim \d+ \(got \d+\)",
    r"stack expects each tensor to be equal size",
)


def read(log: Log) -> Iterator[Symptom]:
    """Rows of different lengths cannot become one tensor, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.94)
    # A list of words is the other thing that becomes no tensor.
    title = _("The labels are words where numbers are wanted")
    text = _("number them before training: label2id = dict((name, i) for i, name in enumerate(sorted(set(labels))))")
    fix = Fix(safety="safe", text=text)
    yield from matches(log, (r"too many dimensions 'str'",), confidence=0.96, title=title, fixes=(fix,))
