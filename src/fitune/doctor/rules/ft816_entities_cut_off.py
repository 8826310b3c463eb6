"""Text past max_length is thrown away, with its entities

## What it says

`truncation=True` in a token-classification script, without overflowing windows.

## Why

Entities past the limit are neither trained on nor scored; `char_to_token` returns None for them and they are
skipped without a word.

## How to know

Count the rows longer than `max_length`.

## How to fix

Use windows: `return_overflowing_tokens=True, stride=32`; fitune splits and merges by itself and scores every
entity.

## How safe

Unsafe: more is learned.

## Sources

kermitt2/delft#256 ; ericput/bert-ner#1 ; huggingface/transformers#33237
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Call, Script
from fitune.doctor.symptom import Symptom

SEVERITY = "note"


def check(script: Script) -> Iterator[Symptom]:
    """Truncation without windows."""
    if not script.is_token_task:
        return
    for node in script.walk(ast.Call):
        call = Call(node) if isinstance(node, ast.Call) else None
        value = call.value("truncation") if call else None
        if (
            call
            and isinstance(value, ast.Constant)
            and value.value is True
            and not call.keyword("return_overflowing_tokens")
        ):
            yield script.symptom(value)
