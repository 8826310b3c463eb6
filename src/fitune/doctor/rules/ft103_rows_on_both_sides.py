"""Texts of one split are also in another

## What it says

Development or test texts are also in the training file.

## Why

Scores on texts that were trained on are too good.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Remove them from the training file, or quote the score without them: fitune gives both.

## How safe

Unsafe: the training rows change.

## Sources

fitune: data/checking ; ymcui/Chinese-BERT-wwm#38
"""

SEVERITY = "warning"
