"""Too many open files

## What it says

`OSError: [Errno 24] Too many open files`, or `received 0 items of ancdata`.

## Why

Loader workers pass tensors through file descriptors, and the limit (`ulimit -n`) is 1024 or less.

## How to know

`ulimit -n` prints the limit.

## How to fix

Type `ulimit -n 65535` before the run (up to the hard limit this needs no root), or `dataloader_num_workers=0`.

## How safe

Safe.

## Sources

https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-strategies
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
TOPIC = "memory"
SAFETY = "safe"
COMMAND = "ulimit -n 65535"
PATTERNS = (
    r"Too many open files|打开的文件过多|打开文件过多|\[Errno 24\]|too many open files in system|EMFILE\b",
    r"received 0 items of ancdata",
)


def read(log: Log) -> Iterator[Symptom]:
    """Too many open files, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)


def examine(machine: Machine) -> Iterator[Symptom]:
    """A limit below 1024 files."""
    if machine.open_files_limit is not None and machine.open_files_limit < 1024:
        yield Symptom(
            evidence=(_("at most {count} open files (ulimit -n)", count=machine.open_files_limit),), severity="warning"
        )
