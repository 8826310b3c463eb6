"""The hub refused the upload or did not answer

## What it says

No valid login, no right to write there, or no network.

## Why

Uploading needs a token with the right to write.

## How to know

The message names the file or folder.

## How to fix

Log in first: `hf auth login` (ModelScope: `modelscope login`).

## How safe

Safe.

## Sources

fitune: predicting/pushing
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"401 Client Error.*/api/repos/create",
    r"(?:40[0-9]|5\d\d) (?:Client|Server) Error.*/(?:commit|preupload|lfs/objects/batch)\b",
)


def read(log: Log) -> Iterator[Symptom]:
    """A push that the hub turned down, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
