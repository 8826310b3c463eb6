"""Writing is not permitted there

## What it says

`PermissionError: [Errno 13]`, `Read-only file system`, `拒绝访问`, `WinError 5` or `WinError 32`.

## Why

The folder belongs to another user (often: it was once run with sudo or inside a container as root), is mounted
read-only, or on Windows another program holds the file open.

## How to know

`ls -ld` the path in the message.

## How to fix

Write to a folder of your own: `--output ~/runs`, `export HF_HOME=~/hf`; nothing needs root. On Windows close
the program that has the file open.

## How safe

Safe.

## Sources

https://docs.python.org/3/library/exceptions.html#PermissionError
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
TOPIC = "disk"
SAFETY = "safe"
PATTERNS = (
    r"\[WinError 1314\]|\(os error 13\)",
    r"PermissionError: |\[Errno 13\]|(?:^\s*|: |\] )(?:权限不够|权限被拒绝)",
    r"Read-only file system|\[Errno 30\]",
    r"\[WinError (?:5|32)\]|(?:^\s*|: |\] )(?:拒绝访问|Access is denied)",
)


def read(log: Log) -> Iterator[Symptom]:
    """Writing is not permitted there, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)


def examine(machine: Machine) -> Iterator[Symptom]:
    """A folder that a run writes to and that may not be written."""
    for disk in machine.disks:
        if disk.role in {"work", "hf cache", "temporary"} and not disk.writable:
            yield Symptom(evidence=(_("{path} may not be written", path=disk.path),))
