"""The tokenizer drops visible characters

## What it says

They reach the model in no form.

## Why

The tokenizer's clean-up takes them for control characters.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Choose another model, if they matter.

## How safe

Safe.

## Sources

fitune: data/checking ; huggingface/tokenizers#1077
"""

SEVERITY = "note"
