"""The learning rate does not suit this model

## What it says

The loss hardly moves from the first step on, and the learning rate is far from what fine-tuning an encoder
wants. In a script: one rate of 5e-4 or more for all weights of a pretrained model.

## Why

Above about 2e-4 a pretrained encoder forgets what it knew and predicts one class; below about 2e-6 it hardly
learns.

## How to know

The peak learning rate in the log, and a flat loss.

## How to fix

Set `learning_rate=3e-5` (base models) or 1e-5 (large ones), with 10 % warm-up; a CRF or new head may take 1e-3
by itself.

## How safe

Unsafe: a learning choice.

## Sources

https://huggingface.co/docs/transformers/training ; https://arxiv.org/abs/1810.04805
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.history import History
from fitune.doctor.script import Call, Script
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "warning"
SAFETY = "unsafe"
SETTINGS = {"learning_rate": 3e-05}


def watch(history: History) -> Iterator[Symptom]:
    """A flat loss beside a peak rate outside [2e-6, 2e-4]."""
    rate, course = history.peak_learning_rate, history.smoothed_losses()
    if rate is None or len(course) < 4 or rate <= 0 or 2e-6 <= rate <= 2e-4:
        return
    if course[-1] > 0.85 * course[0]:
        shown = f"{rate:g}"
        title = (
            _("The learning rate {rate} is too high for an encoder", rate=shown)
            if rate > 2e-4
            else _("The learning rate {rate} is too low to learn anything", rate=shown)
        )
        yield Symptom(
            evidence=(history.losses[0].evidence, history.losses[-1].evidence),
            title=title,
            confidence=0.9,
            line=history.losses[-1].line,
        )


TOO_HIGH = 5e-4
PARTS_ONLY = r"get_peft_model|LoraConfig|requires_grad(?:_\(|\s*=\s*)False|from_config\(|add_adapter|tiny"
"""Adapters, frozen encoders and models without pretrained weights take such rates."""


def check(script: Script) -> Iterator[Symptom]:
    """One number for the whole of a pretrained model, in the arguments or in an optimizer of all its parameters."""
    if "from_pretrained" not in script.text or re.search(PARTS_ONLY, script.text):
        return
    for call in script.calls("TrainingArguments"):
        yield from _too_high(script, call.value("learning_rate"))
    for call in script.calls("AdamW", "Adam"):
        if call.node.args and _all_of_model(call):
            yield from _too_high(script, call.value("lr"))


def _all_of_model(call: Call) -> bool:
    given = call.node.args[0]
    return (
        isinstance(given, ast.Call)
        and isinstance(given.func, ast.Attribute)
        and given.func.attr == "parameters"
        and isinstance(given.func.value, ast.Name)
    )


def _too_high(script: Script, given: ast.expr | None) -> Iterator[Symptom]:
    value = script.resolve(given)
    if isinstance(value, ast.Constant) and isinstance(value.value, float) and value.value >= TOO_HIGH:
        shown = f"{value.value:g}"
        title = _("The learning rate {rate} is too high for an encoder", rate=shown)
        # A note, and left to the user: a model that only looks pretrained, such as a small one for tests, needs it.
        yield script.symptom(value, title=title, confidence=0.9, severity="note")
