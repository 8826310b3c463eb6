"""Another process works in this run's directory

## What it says

The lock names its pid, host and start.

## Why

Two trainings in one directory would overwrite each other.

## How to know

The message names the file or folder.

## How to fix

Watch it with `fitune attach`, or end it with `fitune stop`; remove the lock only when that process is dead.

## How safe

Unsafe: never with a live process.

## Sources

fitune: checkpoint/lock
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
PATTERNS = (r"filelock\S*\.Timeout|file lock '[^']+' could not be acquired",)


def read(log: Log) -> Iterator[Symptom]:
    """A lock that another process holds, or a dead one left behind, seen in a log."""
    title = _("Another process holds the lock of a file")
    yield from matches(log, PATTERNS, confidence=0.93, title=title)
