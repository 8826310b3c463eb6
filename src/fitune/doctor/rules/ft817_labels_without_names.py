"""The model does not know the names of its labels

## What it says

`from_pretrained(..., num_labels=N)` without `id2label`.

## Why

The saved config then says LABEL_0, LABEL_1; whoever loads the model must guess.

## How to know

`model.config.id2label`.

## How to fix

Pass the names: `id2label=id2label, label2id=label2id`.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/tasks/sequence_classification
"""

from collections.abc import Iterator

from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom

SEVERITY = "note"
SAFETY = "safe"


def check(script: Script) -> Iterator[Symptom]:
    """num_labels alone."""
    for call in script.calls("from_pretrained"):
        keyword = call.keyword("num_labels")
        if keyword is None or call.keyword("id2label") or call.keyword("config"):
            continue
        known = script.assigned("id2label") is not None and script.assigned("label2id") is not None
        edits = [script.add_keyword(call, "id2label=id2label, label2id=label2id")] if known else []
        yield script.symptom(keyword, edits=edits)
