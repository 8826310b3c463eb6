"""The model does not know the names of its labels

## What it says

`from_pretrained(..., num_labels=N)` without `id2label`.

## Why

The saved config then says LABEL_0, LABEL_1; whoever loads the model must guess.

## How to know

`model.config.id2label`.

## How to fix

Pass the names: `id2label=id2label, label2id=label2id`. The mended copy takes them from the list or table that the
script has.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/tasks/sequence_classification
"""

from collections.abc import Iterator

from fitune.doctor.label_names import keywords_for_names
from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "note"
SAFETY = "safe"


def check(script: Script) -> Iterator[Symptom]:
    """num_labels alone."""
    for call in script.calls("from_pretrained"):
        keyword = call.keyword("num_labels")
        if keyword is None or call.keyword("id2label") or call.keyword("config"):
            continue
        names = keywords_for_names(script, call)
        if names:
            yield script.symptom(keyword, edits=[script.add_keyword(call, names)])
        else:
            yield script.symptom(keyword, fixes=(_by_hand(),))


def _by_hand() -> Fix:
    text = _(
        "the script does not have the names, so this is left to you: write names = [...] in the order of their "
        "numbers, and pass id2label=dict(enumerate(names)), label2id=dict(zip(names, range(len(names))))"
    )
    return Fix(safety="safe", text=text)
