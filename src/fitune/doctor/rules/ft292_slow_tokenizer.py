"""The tokenizer is a Python one and knows no offsets

## What it says

`word_ids() is not available when using non-fast tokenizers`, `return_offset_mapping is not available when using
Python tokenizers`, `char_to_token() is not available`.

## Why

Offsets come from the Rust tokenizers alone. `BertTokenizer` was a Python one before transformers 5, and some
models have none other.

## How to know

The message names the method; `tokenizer.is_fast` is False.

## How to fix

Load it with `AutoTokenizer.from_pretrained(name, use_fast=True)` or `BertTokenizerFast`; fitune aligns without
a fast tokenizer too.

## How safe

Safe: the ids are the same.

## Sources

huggingface/transformers#17809 ; #23679 ; VinAIResearch/PhoBERT#40
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"(?:word_ids|char_to_token|token_to_chars|words|sequence_ids"
    r"|char_to_word)\(\) is not available when using",
    r"return_offsets?_mapping is not available when using Python tokenizers",
    r"requires? (?:a|the) fast tokenizer|only works for models that have a fast tokenizer",
)


def read(log: Log) -> Iterator[Symptom]:
    """The tokenizer is a Python one and knows no offsets, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
