"""The tokenizer has no padding token

## What it says

`Asking to pad but the tokenizer does not have a padding token`, `Cannot handle batch sizes > 1 if no padding
token is defined`.

## Why

GPT-like models were trained without padding; batches of texts of different lengths need it.

## How to know

`print(tokenizer.pad_token, model.config.pad_token_id)`.

## How to fix

Type `tokenizer.pad_token = tokenizer.eos_token` and `model.config.pad_token_id = tokenizer.pad_token_id` before
training; or take an encoder such as bert-base-chinese, which has one.

## How safe

Safe: padding is masked.

## Sources

https://huggingface.co/docs/transformers/pad_truncation
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (r"tokenizer does not have a padding token|if no padding token is defined",)


def read(log: Log) -> Iterator[Symptom]:
    """The tokenizer has no padding token, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
