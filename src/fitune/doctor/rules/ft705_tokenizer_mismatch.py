"""Tokenizer and weights do not belong together

## What it says

Vocabulary sizes differ, Chinese is not split, or the tokenizer cannot say where a token lies.

## Why

Files of two models were mixed in one folder.

## How to know

The message names the file or folder.

## How to fix

Copy vocab.txt or tokenizer.json again from where the weights came from.

## How safe

Safe.

## Sources

fitune: hf/models ; Socialbird-AILab/BERT-Classification-Tutorial#5
"""

SEVERITY = "error"
