"""A DataLoader worker was killed or died

## What it says

`DataLoader worker (pid N) is killed by signal: Killed` or `exited unexpectedly`.

## Why

Each worker has its own copy of the rows it touches (copy-on-write of Python lists), until host memory is used
up; or the worker crashed in the data code.

## How to know

Host memory rises with the number of workers; with 0 workers the real exception shows.

## How to fix

Set `dataloader_num_workers=0`: tokenised text needs no workers, and the real exception appears.

## How safe

Safe: the order of the rows stays the same.

## Sources

pytorch/pytorch#20433 ; #5902
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT825", "FT315", "FT406", "FT316", "FT420", "FT415"}
PATTERNS = (
    r"DataLoader worker \(pid\S* [\d, ]+\) is killed by signal: (?!Bus)",
    r"DataLoader worker \(pid\S* [\d, ]+\) exited unexpectedly",
)


def read(log: Log) -> Iterator[Symptom]:
    """A DataLoader worker was killed or died, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.94)
