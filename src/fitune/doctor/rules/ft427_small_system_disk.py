"""A rented box keeps its data disk elsewhere

## What it says

The model cache or the run would go to a small system disk, while the data disk is nearly empty.

## Why

Rented boxes have a system disk of 20-30 GB that is lost with the box, and a data disk under another path.

## How to know

`df -h` shows both.

## How to fix

Work on the data disk, and let the cache live there: `export HF_HOME=<data disk>/hf`.

## How safe

Safe; files already downloaded stay where they are.

## Sources

https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
"""

from collections.abc import Iterator

from fitune.doctor.oom import gib
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "warning"
TOPIC = "disk"


def examine(machine: Machine) -> Iterator[Symptom]:
    """A data disk with more room than the file system of cache or work."""
    data = max(
        (d for d in machine.disks if d.role == "data disk" and d.writable), key=lambda d: d.free_bytes, default=None
    )
    if data is None:
        return
    for role in ("hf cache", "work"):
        disk = machine.disk(role)
        if (
            disk is not None
            and disk.same_as_system
            and disk.free_bytes < data.free_bytes
            and disk.free_bytes < 40 * 2**30
        ):
            evidence = _(
                "{path} has {free} free; the data disk {data} has {data_free}",
                path=disk.path,
                free=gib(disk.free_bytes),
                data=data.path,
                data_free=gib(data.free_bytes),
            )
            command = f"export HF_HOME={data.path}/hf" if role == "hf cache" else f"cd {data.path}"
            yield Symptom(
                evidence=(evidence,), fixes=(Fix(safety="safe", text=_("use the data disk"), command=command),)
            )
