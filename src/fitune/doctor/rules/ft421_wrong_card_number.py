"""The card that was asked for is not there

## What it says

`invalid device ordinal`, `CUDA unknown error - this may be due to an incorrectly set up environment`, or
`CUDA_VISIBLE_DEVICES` hides every card.

## Why

`CUDA_VISIBLE_DEVICES` names a card that does not exist or is empty, a script asks for `cuda:1` on a machine
with one card, or the variable was changed after CUDA was first used.

## How to know

`nvidia-smi -L` lists the cards that exist.

## How to fix

Unset the variable, or give a number that exists: `CUDA_VISIBLE_DEVICES=0`; inside the program the first visible
card is always `cuda:0`.

## How safe

Safe.

## Sources

https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
PERSISTS = True
TOPIC = "cards"
SAFETY = "safe"
COMMAND = "export CUDA_VISIBLE_DEVICES=0"
PATTERNS = (
    r"You requested gpu: \[|invalid device ordinal|Invalid device argument",
    r"CUDA unknown error - this may be due to an incorrectly set up environment",
)


def read(log: Log) -> Iterator[Symptom]:
    """The card that was asked for is not there, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)


def examine(machine: Machine) -> Iterator[Symptom]:
    """CUDA_VISIBLE_DEVICES against the cards that exist."""
    value = machine.settings.get("CUDA_VISIBLE_DEVICES")
    if value is None or not machine.devices:
        return
    wanted = [part.strip() for part in value.split(",") if part.strip()]
    strange = [part for part in wanted if part.isdigit() and int(part) >= len(machine.devices)]
    if not wanted or value.strip() == "-1" or strange:
        yield Symptom(
            evidence=(
                _(
                    "CUDA_VISIBLE_DEVICES={value}, and there are {count} cards (0 is the first)",
                    value=value or '""',
                    count=len(machine.devices),
                ),
            )
        )
