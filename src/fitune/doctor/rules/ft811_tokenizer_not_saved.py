"""The tokenizer is not saved with the model

## What it says

The Trainer knows no tokenizer, and nothing calls `tokenizer.save_pretrained`.

## Why

`trainer.save_model` saves what the Trainer knows; the folder then cannot be used alone.

## How to know

The output folder has no vocab.txt or tokenizer.json.

## How to fix

Give it to the Trainer: `processing_class=tokenizer` (before 4.46: `tokenizer=tokenizer`).

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/main_classes/trainer
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom

SEVERITY = "note"
SAFETY = "safe"


def check(script: Script) -> Iterator[Symptom]:
    """A Trainer without tokenizer in a script that has one and saves it nowhere."""
    name = script.tokenizer
    if name is None or re.search(rf"\b{name}\.(?:save_pretrained|push_to_hub)\(", script.text):
        return
    for trainer in script.calls("Trainer"):
        if not trainer.keyword("processing_class") and not trainer.keyword("tokenizer"):
            yield script.symptom(trainer.node, edits=[script.add_keyword(trainer, f"processing_class={name}")])
    if script.calls("Trainer"):
        return
    for call in script.calls("save_pretrained"):
        owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        statement = script.statement(call.node)
        if owner is not None and "model" in script.source(owner).lower() and statement and call.node.args:
            line = f"{name}.save_pretrained({script.source(call.node.args[0])})"
            yield script.symptom(call.node, edits=[script.insert_after(statement, line)])
            return
