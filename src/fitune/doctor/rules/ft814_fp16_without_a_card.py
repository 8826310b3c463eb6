"""fp16 is switched on without asking for a card

## What it says

`fp16=True` stands in the script; without a CUDA card: `fp16 mixed precision requires a GPU`, or `not
implemented for 'Half'`.

## Why

Half precision of this kind needs a CUDA card.

## How to know

`torch.cuda.is_available()`.

## How to fix

Write `fp16=torch.cuda.is_available()`, or let fitune choose the precision.

## How safe

Rounding on the card, nothing on the CPU.

## Sources

https://huggingface.co/docs/transformers/main_classes/trainer
"""

import ast
from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "note"
SAFETY = "safe"


def read(log: Log) -> Iterator[Symptom]:
    """What transformers, accelerate and torch say of half precision on a CPU."""
    patterns = (
        r"FP16 [Mm]ixed precision training with AMP or APEX.*can only be used on CUDA",
        r"fp16 mixed precision requires a GPU",
        r"\"\w+\" not implemented for 'Half'",
        r"--fp16.*(?:can only be used|requires).*(?:CUDA|GPU)",
    )
    yield from matches(
        log, patterns, confidence=0.96, severity="error", title=_("fp16 needs a CUDA card, and none is used here")
    )


def check(script: Script) -> Iterator[Symptom]:
    """fp16=True as a literal."""
    for call in script.calls("TrainingArguments"):
        value = call.value("fp16")
        if isinstance(value, ast.Constant) and value.value is True:
            yield script.symptom(
                value,
                edits=[script.replace(value, "torch.cuda.is_available()"), *script.add_import("import torch", "torch")],
            )
