"""The driver was updated and the machine not restarted

## What it says

`Failed to initialize NVML: Driver/library version mismatch`.

## Why

The kernel still runs the old driver module, while the libraries on disk are new (often an unattended upgrade).

## How to know

`cat /proc/driver/nvidia/version` and the libraries' version differ.

## How to fix

Restart the machine (ask its owner); nothing in Python helps.

## How safe

Safe, but a restart ends every running job.

## Sources

https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine

SEVERITY = "error"
TOPIC = "driver"
PATTERNS = (
    r"Driver/library version mismatch",
    r"Error 803: system has unsupported display driver",
)


def read(log: Log) -> Iterator[Symptom]:
    """The driver was updated and the machine not restarted, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.98)


def examine(machine: Machine) -> Iterator[Symptom]:
    """NVML or nvidia-smi says so."""
    if "version mismatch" in machine.driver.error.lower():
        yield Symptom(evidence=(machine.driver.error,))
