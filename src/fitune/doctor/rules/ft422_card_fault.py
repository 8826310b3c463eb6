"""The card or its driver failed

## What it says

`uncorrectable ECC error`, `GPU has fallen off the bus`, `Xid`, `unspecified launch failure`, `an illegal memory
access was encountered`.

## Why

Hardware (memory, power, heat, the slot), or, for an illegal access alone, a bug in a custom kernel or an index
out of range.

## How to know

`dmesg | grep -i xid` lists the driver's reports; the same batch on the CPU tells a data error from a fault.

## How to fix

Restart the machine or return the rented box; when only "illegal memory access" is there, run once with
`CUDA_LAUNCH_BLOCKING=1`, and without custom kernels.

## How safe

Safe; go on from the last checkpoint.

## Sources

https://docs.nvidia.com/deploy/xid-errors/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
FOLLOWS = {"FT531", "FT532"}
TOPIC = "cards"
PATTERNS = (
    r"NPU function error|PTA call acl api failed|hipErrorLaunchFailure|HSA_STATUS_ERROR"
    r"|amdgpu: \[gfxhub\] page fault",
    r"uncorrectable ECC error|CUDA error: operation not supported",
    r"GPU (?:has fallen off the bus|is lost)|NVRM: Xid|Unable to determine the device handle",
    r"unspecified launch failure|the launch timed out and was terminated",
    r"an illegal memory access was encountered|misaligned address|CUDA error: an illegal instruction",
)


def read(log: Log) -> Iterator[Symptom]:
    """The card or its driver failed, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9)


def examine(machine: Machine) -> Iterator[Symptom]:
    """Uncorrected memory errors counted by the driver."""
    for device in machine.devices:
        if device.uncorrected_ecc_errors:
            yield Symptom(
                evidence=(
                    _(
                        "card {index}: {count} uncorrected memory errors since the driver was loaded",
                        index=device.index,
                        count=device.uncorrected_ecc_errors,
                    ),
                )
            )
