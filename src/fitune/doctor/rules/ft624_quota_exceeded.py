"""Your share of the disk is used up

## What it says

`Disk quota exceeded` (errno 122), though `df` shows room.

## Why

The cluster gives each user a quota of bytes or of files, often a small one for the home folder.

## How to know

`quota -s` (or the cluster's own command) shows both limits.

## How to fix

Write to the scratch or data disk, and move the caches there: `export HF_HOME=/scratch/$USER/hf`.

## How safe

Safe; files on scratch disks may be deleted after some weeks.

## Sources

https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (r"Disk quota exceeded|\[Errno 122\]|EDQUOT|超出磁盘限额",)


def read(log: Log) -> Iterator[Symptom]:
    """Your share of the disk is used up, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.98)
