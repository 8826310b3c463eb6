"""Every row is padded to max_length

## What it says

`padding="max_length"` in the tokenizer call.

## Why

The card then computes padding: 3.25 times the needed work on CLUENER at 128, 4.8 times on waimai.

## How to know

Compare `max_length` with the mean length of the rows.

## How to fix

Leave padding to the collator, which pads to the longest row of a batch:
`DataCollatorForTokenClassification(tokenizer)` or `DataCollatorWithPadding(tokenizer)`.

## How safe

Exact: padding is masked.

## Sources

https://huggingface.co/docs/transformers/pad_truncation ; the figures: measured for fitune
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Call, Script, text_of
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "note"
SAFETY = "safe"


def check(script: Script) -> Iterator[Symptom]:
    """padding="max_length" in a call; the mended script pads in the collator."""
    for node in script.walk(ast.Call):
        call = Call(node) if isinstance(node, ast.Call) else None
        keyword = call.keyword("padding") if call else None
        if call is None or keyword is None or text_of(keyword.value) != "max_length":
            continue
        edits: list[Edit] = []
        trainers = script.calls("Trainer")
        if text_of(call.value("return_tensors")) == "pt":
            edits.append(script.replace(keyword.value, "True"))
        elif script.tokenizer and trainers:
            edits += [script.delete_keyword(call, keyword), *_collate(script, trainers[0])]
        yield script.symptom(keyword, edits=edits)


def _collate(script: Script, trainer: Call) -> list[Edit]:
    if trainer.keyword("data_collator"):
        return []
    name = "DataCollatorForTokenClassification" if script.is_token_task else "DataCollatorWithPadding"
    return [
        script.add_keyword(trainer, f"data_collator={name}({script.tokenizer})"),
        *script.add_import(f"from transformers import {name}", name),
    ]
