"""Tokenizer and weights do not belong together

## What it says

Vocabulary sizes differ (`size mismatch for ...word_embeddings.weight`), Chinese is not split, or the
tokenizer cannot say where a token lies.

## Why

Files of two models were mixed in one folder, or tokens were added to the tokenizer before the weights were loaded.

## How to know

The message names the file or folder.

## How to fix

Copy config.json, vocab.txt or tokenizer.json again from where the weights came from; load the weights first and call
`model.resize_token_embeddings(len(tokenizer))` after it.

## How safe

Safe.

## Sources

fitune: hf/models ; Socialbird-AILab/BERT-Classification-Tutorial#5
"""

from collections.abc import Iterator

from fitune.doctor.load_report import vocabulary_differs
from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
PERSISTS = True


def read(log: Log) -> Iterator[Symptom]:
    """Word embeddings of another vocabulary than the model's configuration says, seen in a log."""
    if hits := vocabulary_differs(log):
        title = _("The weights have another vocabulary than the model's configuration")
        yield symptom(hits, confidence=0.96, title=title)
