"""Gradient accumulation multiplies the loss

## What it says

`gradient_accumulation_steps` above 1 with the stock Trainer and a BERT head.

## Why

The heads take `**kwargs` and ignore `num_items_in_batch`, so the Trainer does not divide: loss and gradients
come out as many times too large as there are passes (1.098 becomes 8.787 with 8).

## How to know

The logged loss grows with `gradient_accumulation_steps` for the same rows.

## How to fix

Use `from fitune import Trainer`, which is exact; or set `trainer.model_accepts_loss_kwargs = False` after
making the Trainer, which divides again.

## How safe

Unsafe in the word's sense: the gradients become those of the batch size that was meant.

## Sources

huggingface/transformers#47688 ; #37766 ; measured for fitune with transformers 5.24
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.script import Script
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "warning"
SAFETY = "unsafe"


def check(script: Script) -> Iterator[Symptom]:
    """A literal number of accumulation steps above 1, with transformers' own Trainer and head."""
    if re.search(r"from fitune import|model_accepts_loss_kwargs|compute_loss_func|def compute_loss", script.text):
        return
    trainers = script.calls("Trainer")
    for call in script.calls("TrainingArguments"):
        value = script.resolve(call.value("gradient_accumulation_steps"))
        keyword = call.keyword("gradient_accumulation_steps")
        if (
            keyword is None
            or not isinstance(value, ast.Constant)
            or not isinstance(value.value, int)
            or value.value < 2
        ):
            continue
        edits: list[Edit] = []
        parent = script.parent(trainers[0].node) if trainers else None
        if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
            line = (
                f"{parent.targets[0].id}.model_accepts_loss_kwargs = False  # divide the loss by the accumulation steps"
            )
            edits = [script.insert_after(parent, line)]
        yield script.symptom(keyword, edits=edits)
    yield from _own_loops(script)


def _own_loops(script: Script) -> Iterator[Symptom]:
    """A loop of one's own that steps every n-th batch and adds undivided losses."""
    for test in script.walk(ast.If):
        if not isinstance(test, ast.If) or not any(isinstance(node, ast.Mod) for node in ast.walk(test.test)):
            continue
        steps = [n for n in ast.walk(test) if isinstance(n, ast.Call) and script.source(n.func).endswith(".step")]
        loop = script.parent(test)
        number = next(
            (n.right for n in ast.walk(test.test) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod)), None
        )
        if not steps or not isinstance(loop, ast.For) or number is None:
            continue
        for call in (n for n in ast.walk(loop) if isinstance(n, ast.Call)):
            owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "backward" else None
            if not isinstance(owner, ast.Name) or call.lineno > test.lineno:
                continue
            divided = rf"\b{owner.id}\s*(?:/=|=\s*[^\n]*/)|\.accumulate\(|reduction\s*=\s*['\"]sum"
            if not re.search(divided, script.source(loop)):
                yield script.symptom(call, edits=[script.replace(owner, f"({owner.id} / {script.source(number)})")])
