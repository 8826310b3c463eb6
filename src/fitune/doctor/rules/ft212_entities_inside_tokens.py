"""Entities cannot be expressed in tokens

## What it says

They begin or end inside a token, or on characters that the tokenizer drops.

## Why

Such an entity is never found exactly.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Correct its ends, or choose a model that reads character by character.

## How safe

Unsafe: only you can know.

## Sources

fitune: data/checking ; huggingface/tokenizers#404
"""

SEVERITY = "warning"
