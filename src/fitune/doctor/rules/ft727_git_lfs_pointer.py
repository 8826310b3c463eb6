"""The weights file is a Git LFS pointer of 130 bytes

## What it says

`invalid load key, 'v'.`, or a weights file whose text begins with `version https://git-lfs.github.com/spec/v1`.

## Why

The repository was cloned without Git LFS: text files came along, the weights are only a note of where they are.

## How to know

`ls -l` shows a weights file of about 130 bytes.

## How to fix

Run `git lfs install && git lfs pull` in the folder, or download with `hf download MODEL --local-dir FOLDER`.

## How safe

Safe.

## Sources

https://huggingface.co/docs/hub/repositories-getting-started
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
COMMAND = "git lfs install && git lfs pull"
PATTERNS = (
    r"invalid load key, 'v'|Unsupported operand 118",
    r"without having git-lfs installed|git-lfs: (?:command )?not found|'lfs' is not a git command",
    r"version https://git-lfs\.github\.com/spec",
)


def read(log: Log) -> Iterator[Symptom]:
    """The weights file is a Git LFS pointer of 130 bytes, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
