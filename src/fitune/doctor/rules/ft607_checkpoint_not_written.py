"""The checkpoint was not saved: the disk failed

## What it says

The system reported an error other than a full or read-only disk.

## Why

A network disk that went away, or a failing one.

## How to know

The message names the file or folder.

## How to fix

Check the disk; the earlier checkpoints are intact.

## How safe

Safe.

## Sources

fitune: checkpoint/commit
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"\[Errno 37\] No locks available|\[Errno 16\] Device or resource busy: '\S*\.nfs",
    r"Stale (?:NFS )?file handle|\[Errno 116\]|Transport endpoint is not connected",
    r"\[Errno 5\]|OSError: .*Input/output error|blk_update_request: I/O error|failed with Input/output error",
)


def read(log: Log) -> Iterator[Symptom]:
    """A disk or network folder that fails, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
