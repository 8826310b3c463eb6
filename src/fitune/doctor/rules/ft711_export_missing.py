"""The folder holds no exported model

## What it says

The engine that was asked for has no file there.

## Why

Exporting is a step of its own.

## How to know

The message names the file or folder.

## How to fix

Make it: `fitune export RUN --to onnx`.

## How safe

Safe.

## Sources

fitune: predicting/engines
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (r"\[ONNXRuntimeError\] : 3 : NO_SUCHFILE|Load model \S+ failed.*File doesn't exist",)


def read(log: Log) -> Iterator[Symptom]:
    """ONNX Runtime finds no file, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
