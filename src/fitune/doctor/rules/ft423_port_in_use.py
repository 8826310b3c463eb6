"""The port of the launcher is taken

## What it says

`EADDRINUSE`, `Address already in use`, while several processes start.

## Why

Another run (or one that did not end) uses the same master port, 29500 by default.

## How to know

`ss -ltnp | grep 29500` shows who listens.

## How to fix

Let the launcher choose a free port: `torchrun --master-port 0` (or `--standalone`), or set `MASTER_PORT`.

## How safe

Safe.

## Sources

https://docs.pytorch.org/docs/stable/elastic/run.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (r"EADDRINUSE|Address already in use|地址已在使用|通常每个套接字地址",)


def read(log: Log) -> Iterator[Symptom]:
    """The port of the launcher is taken, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
