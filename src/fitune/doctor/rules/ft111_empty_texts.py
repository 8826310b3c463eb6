"""Texts are empty

## What it says

Rows without a text.

## Why

There is nothing to learn from them.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Remove the rows: `--fix` does.

## How safe

Safe.

## Sources

fitune: data/checking
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "warning"


def read(log: Log) -> Iterator[Symptom]:
    """A tokenizer that was given nothing, or a number, where it wants text."""
    hits = log.find(
        r"text input must (?:be )?of type `?str`?",
        r"Length of all samples has to be greater than 0|TextEncodeInput must be Union\[|TextInputSequence must be str",
    )
    if hits:
        title = _("A text is empty or not text (None, nan or a number)")
        text = _("drop such rows and make the others text: data = data.dropna(subset=['text']).astype(str)")
        yield symptom(hits, confidence=0.93, title=title, severity="error", fixes=(Fix(safety="display", text=text),))
