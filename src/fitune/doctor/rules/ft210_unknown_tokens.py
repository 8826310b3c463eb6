"""Many tokens are unknown ([UNK])

## What it says

Characters that the vocabulary does not have.

## Why

The model cannot tell them apart; bert-base-chinese has no capitals and no curly quotes.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Lower-case (fitune does when the vocabulary has no capitals), try `normalize_quotes = true`, or choose a model
whose vocabulary has them.

## How safe

Unsafe: the input changes, offsets stay.

## Sources

fitune: data/checking ; huggingface/transformers#9286 ; ymcui/Chinese-BERT-wwm#221
"""

SEVERITY = "warning"
