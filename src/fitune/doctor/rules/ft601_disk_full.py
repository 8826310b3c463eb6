"""The disk is full

## What it says

`No space left on device`, `There is not enough space on the disk`, `PytorchStreamWriter failed writing file`.

## Why

Every checkpoint of a BERT-base with AdamW takes 1.2-1.4 GB, and the caches of hub and datasets grow; or there
are no inodes left.

## How to know

`df -h` and `df -i` for the path in the message.

## How to fix

Make room: delete old runs and caches (`hf cache prune`). A fitune run waits for that and goes on by itself; one that
has ended goes on with the same command. Or write to another disk: `--out` names a directory there. A script of
Hugging Face's Trainer keeps less with `save_total_limit=1` and `save_only_model=True`.

## How safe

Deleting checkpoints loses the chance to resume from them.

## Sources

huggingface/transformers#35070 ; modelscope/ms-swift#6392 ; primeqa/primeqa#259
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.oom import gib
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
TOPIC = "disk"
SAFETY = "unsafe"
PATTERNS = (
    r"Not enough free disk space to download|StorageFull|\(os error 28\)|database or disk is full|系统盘(?:空间)?已?满",
    r"low on resource: ephemeral-storage",
    r"No space left on device|ENOSPC|\[Errno 28\]",
    r"(?:^\s*|: |\] )(?:磁盘空间不足|设备上没有空间)|not enough space on the disk|WinError 112",
    r"PytorchStreamWriter failed writing file|inline_container\.cc.*(?:enforce fail|unexpected pos)",
)
UNLESS = (r"No space left on device: '/dev/shm",)


def read(log: Log) -> Iterator[Symptom]:
    """The disk is full, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96, unless=UNLESS)


NEEDED_BYTES = 5 * 2**30


def examine(machine: Machine) -> Iterator[Symptom]:
    """Less room than a run with one checkpoint takes, or no inodes."""
    for disk in machine.disks:
        if disk.role not in {"work", "hf cache", "temporary"}:
            continue
        where = _(
            "{path}: {free} free of {total}", path=disk.path, free=gib(disk.free_bytes), total=gib(disk.total_bytes)
        )
        if disk.free_bytes < 2**30 // (1 if disk.role != "temporary" else 4):
            yield Symptom(evidence=(where,))
        elif disk.free_bytes < NEEDED_BYTES and disk.role != "temporary":
            yield Symptom(evidence=(where,), severity="warning")
        if disk.free_inodes is not None and disk.free_inodes < 1000:
            yield Symptom(evidence=(_("{path}: {count} inodes left", path=disk.path, count=disk.free_inodes),))
