"""Entities hold unknown tokens

## What it says

Part of an entity is [UNK] for the model.

## Why

What is written there is hidden; the model can go by the context alone.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Choose a model whose vocabulary has these characters.

## How safe

Unsafe: another model.

## Sources

fitune: data/checking ; ckiplab/ckip-transformers#7
"""

SEVERITY = "warning"
