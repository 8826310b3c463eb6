"""A checkpoint could not be renamed into place

## What it says

`FileNotFoundError` or `FileExistsError` on `tmp-checkpoint-500 -> checkpoint-500`, `WinError 183`.

## Why

Versions 4.36-4.38 of transformers write to a temporary name and rename it, and two ranks (or a virus scanner,
or a network disk) get in each other's way.

## How to know

The path in the message holds `tmp-checkpoint`.

## How to fix

Update transformers to 4.57 or newer, remove the `tmp-checkpoint-*` folder and resume from the checkpoint before
it.

## How safe

Safe.

## Sources

huggingface/transformers#27925 ; #28009
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
COMMAND = 'pip install -U "transformers>=4.57,<6"'
PATTERNS = (
    r"tmp-checkpoint-\d+.*(?:->|No such file|Errno|WinError)|(?:Errno|WinError).*tmp-checkpoint-\d+",
    r"\[WinError (?:183|145)\]|Error while serializing: .*os error 1224",
)


def read(log: Log) -> Iterator[Symptom]:
    """A checkpoint could not be renamed into place, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
