"""The output folder already holds a run

## What it says

`Output directory (...) already exists and is not empty`.

## Why

The example scripts refuse to write into a used folder.

## How to know

The folder holds `checkpoint-*`: it is an earlier run.

## How to fix

To go on, pass `--resume_from_checkpoint`; to start anew, take a new folder name. `fitune train` with the same
job goes on by itself, `--fresh` keeps the old run beside.

## How safe

Resuming is safe; overwriting loses the old run.

## Sources

hiyouga/LlamaFactory#721 ; huggingface/trl#3179 ; huggingface/transformers#41323
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (r"Output directory .* already exists and is not empty",)


def read(log: Log) -> Iterator[Symptom]:
    """The output folder already holds a run, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
