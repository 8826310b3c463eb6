"""The model is moved to the card before the Trainer does it

## What it says

`model.to(device)` or `model.cuda()` in a script with a Trainer.

## Why

The Trainer moves the model itself; done by hand it takes memory before it is needed, and the wrong card with
several processes.

## How to know

The line is not needed: without it everything works.

## How to fix

Delete the line.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/main_classes/trainer
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom

SEVERITY = "note"
SAFETY = "safe"


def check(script: Script) -> Iterator[Symptom]:
    """model.to(...) or model.cuda() as a statement of its own, above a Trainer."""
    trainers = script.calls("Trainer")
    if not trainers:
        return
    for call in script.calls("to", "cuda"):
        owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        model = trainers[0].value("model") or (trainers[0].node.args[0] if trainers[0].node.args else None)
        parent = script.parent(call.node)
        same = isinstance(owner, ast.Name) and isinstance(model, ast.Name) and owner.id == model.id
        if same and isinstance(parent, ast.Expr) and parent.lineno < trainers[0].node.lineno:
            yield script.symptom(parent, edits=[script.delete_statement(parent)])
