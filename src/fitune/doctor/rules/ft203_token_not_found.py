"""A token cannot be found in the text

## What it says

The aligner for tokenizers without offsets met a piece that the text does not hold.

## Why

The tokenizer rewrites characters in a way that cannot be followed.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Use the fast version of this tokenizer, or another model.

## How safe

Safe: training on guessed offsets would not be.

## Sources

fitune: data/fallback ; huggingface/transformers#17809
"""

SEVERITY = "error"
