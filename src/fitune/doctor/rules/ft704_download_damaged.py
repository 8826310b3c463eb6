"""A downloaded file arrived damaged

## What it says

Its hash is not the one that the hub states.

## Why

A broken connection, or a mirror that changed the file.

## How to know

The message names the file or folder.

## How to fix

Type the command again; the damaged file was removed.

## How safe

Safe.

## Sources

fitune: hf/hub
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"Consistency check failed: file should be of size",
    r"(?:sha256|SHA-?256|hash|checksum|md5)\b.{0,40}(?:mismatch|does ?n[o']t match|not match)|(?:mismatch"
    r"|wrong) .{0,20}(?:sha256|checksum)",
)


def read(log: Log) -> Iterator[Symptom]:
    """A downloaded file arrived damaged, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9, unless=(r"pip|DO NOT MATCH THE HASHES",))
