"""The engine that the exported model needs is not installed

## What it says

ONNX Runtime or CTranslate2 runs the exported model, and it is not there.

## Why

Both are optional parts.

## How to know

The message names the file or folder.

## How to fix

Type `pip install "fitune[export]"` for ONNX Runtime, `pip install "fitune[ctranslate2]"` for CTranslate2.

## How safe

Safe.

## Sources

fitune: predicting/engines
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (r"Asked to use \w+ExecutionProvider|Specified provider '\w+' is not in available provider names",)


def read(log: Log) -> Iterator[Symptom]:
    """The build of ONNX Runtime that is there lacks the provider."""
    yield from matches(log, PATTERNS, confidence=0.93)
