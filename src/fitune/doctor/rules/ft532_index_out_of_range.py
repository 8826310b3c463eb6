"""A token id or a position is outside the embedding

## What it says

`IndexError: index out of range in self` on the CPU; on a card ``Assertion `srcIndex < srcSelectDimSize`
failed``.

## Why

The text has more tokens than the model has positions (512), or the tokenizer belongs to another model, or
tokens were added without `resize_token_embeddings`.

## How to know

`max(len(ids))` against `config.max_position_embeddings`, and `max(ids)` against `config.vocab_size`.

## How to fix

Load tokenizer and model from the same name, and split or truncate at 512 tokens; after `add_tokens` call
`model.resize_token_embeddings(len(tokenizer))`. The CPU names the index.

## How safe

Safe; truncation loses text, windows do not.

## Sources

huggingface/transformers#5611 ; #5228
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"Tried to access index \d+ out of table|index out of range: ",
    r"index out of range in self|index out of bounds: 0 <= |index \d+ is out of bounds for dimension \d+ with size",
    r"srcIndex < srcSelectDimSize|vectorized_gather_kernel|ind >= ?0 && ind < ind_dim_size"
    r"|`?idx_dim >= 0 && idx_dim < index_size|-sizes\[i\] <= index && index < sizes\[i\]",
)


def read(log: Log) -> Iterator[Symptom]:
    """The assertion or the index, with the late echo on the card."""
    if hits := log.find(*PATTERNS):
        yield symptom(hits + log.find(r"device-side assert triggered"), confidence=0.95)
