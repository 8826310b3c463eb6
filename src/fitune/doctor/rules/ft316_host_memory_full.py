"""Host memory is used up

## What it says

`DefaultCPUAllocator: can't allocate memory`, `MemoryError`, `Unable to allocate ... for an array`, or Windows'
error 1455 (paging file too small).

## Why

The program asked for more RAM than there is: data held twice, many loader workers, a model loaded in fp32
beside its checkpoint, or all evaluation logits on the CPU.

## How to know

The message says how much was asked for; a task manager shows RAM at its limit.

## How to fix

Use `dataloader_num_workers=0`, read the data in pieces, do not keep logits (`preprocess_logits_for_metrics`);
on Windows enlarge the paging file.

## How safe

Safe: none of it changes what is learned.

## Sources

huggingface/transformers#25313 ; pytorch/pytorch#20433
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.oom import gib
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
TOPIC = "memory"
PATTERNS = (
    r"ArrowMemoryError|malloc of size \d+ failed",
    r"DefaultCPUAllocator: (?:not enough|can't allocate) memory",
    r"^\s*(?:numpy\S*\.)?(?:_Array)?MemoryError\b",
    r"Unable to allocate .* for an array",
    r"WinError 1455|页面文件太小|paging file is too small",
    r"std::bad_alloc|\bnot enough memory: you tried to allocate|^\s*(?:RuntimeError: )?bad allocation\b",
    r"(?:\[Errno 12\]|\bfork:|\bmmap\b.*) Cannot allocate memory|无法分配内存",
)


def read(log: Log) -> Iterator[Symptom]:
    """Host memory is used up, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)


def examine(machine: Machine) -> Iterator[Symptom]:
    """Less than 4 GiB of usable host memory."""
    usable = min(machine.memory_bytes, machine.memory_limit_bytes or machine.memory_bytes)
    if 0 < usable < 4 * 2**30:
        yield Symptom(
            evidence=(_("{gib} of host memory; fine-tuning an encoder needs about 4 GiB", gib=gib(usable)),),
            severity="warning",
        )
