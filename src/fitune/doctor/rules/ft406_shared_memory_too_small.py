"""Bus error in a loader: /dev/shm is too small

## What it says

`DataLoader worker is killed by signal: Bus error`, or `unable to allocate shared memory`.

## Why

Docker gives a container 64 MiB of /dev/shm; loader workers pass their batches through it.

## How to know

`df -h /dev/shm` shows 64M.

## How to fix

Set `dataloader_num_workers=0` (tokenised text needs none), or start the container with `--shm-size=2g` or
`--ipc=host`.

## How safe

Safe: the order of the rows stays the same.

## Sources

pytorch/pytorch#5040 ; fastai/docker-containers#21
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.oom import gib
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
TOPIC = "memory"
SAFETY = "safe"
PATTERNS = (
    r"killed by signal: Bus error",
    r"insufficient shared memory \(shm\)",
    r"unable to (?:open|allocate|mmap|resize) (?:\S+ )*shared memory|unable to (?:write to|mmap|open"
    r"|resize)[^\n]*torch_\d+",
    r"Bus error(?: \(core dumped\)|.*核心已转储|$)",
    r"总线错误",
    r"No space left on device: '/dev/shm",
)

# The same words, when it is file descriptors that ran out and not bytes.
UNLESS = (r"shared memory object .*(?:Too many open files|\(24\))",)


def read(log: Log) -> Iterator[Symptom]:
    """Bus error in a loader, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.98, unless=UNLESS)


def examine(machine: Machine) -> Iterator[Symptom]:
    """Less than 512 MiB of shared memory."""
    disk = machine.disk("shared memory")
    if disk is not None and disk.total_bytes < 512 * 2**20:
        yield Symptom(
            evidence=(_("{path} has {total}", path=disk.path, total=gib(disk.total_bytes)),), severity="warning"
        )
