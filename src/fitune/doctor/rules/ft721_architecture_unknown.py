"""This transformers does not know the model's architecture

## What it says

`The checkpoint you are trying to load has model type ... but Transformers does not recognize this
architecture`, `Unrecognized model in ...`, `KeyError: 'modernbert'`.

## Why

The model is newer than the installed transformers, or its config.json lacks `model_type`.

## How to know

`model_type` in config.json; `pip show transformers`.

## How to fix

Upgrade: `pip install -U "transformers>=4.57,<6"`; for an old folder without `model_type`, load it with its own
class (`BertModel.from_pretrained`).

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/model_doc/auto
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
COMMAND = 'pip install -U "transformers>=4.57,<6"'
PATTERNS = (
    r"Transformers does not recognize this architecture",
    r"Unrecognized (?:model in|configuration class)|Should have a `model_type` key",
    r"KeyError: '(?:modernbert|qwen\d?|deberta-v2|nomic_bert|eurobert)'",
)


def read(log: Log) -> Iterator[Symptom]:
    """This transformers does not know the model's architecture, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)
