"""The tokenizer's offsets are wrong

## What it says

Offsets outside the text, out of order, or for another number of rows.

## Why

Some tokenizers count in the normalised text; labels would be shifted silently.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Use the fast version of this tokenizer, or another model.

## How safe

Safe.

## Sources

fitune: data/alignment ; huggingface/tokenizers#81
"""

SEVERITY = "error"
