"""This Python is too old, too new or 32-bit

## What it says

pip finds no torch at all, or a package asks for another Python.

## Why

PyTorch builds wheels for a few Python versions and for 64 bits alone; transformers 5 needs Python 3.10.

## How to know

`python -VV` and `python -c "import struct; print(struct.calcsize('P') * 8)"`.

## How to fix

Make an environment with Python 3.11 or 3.12: `conda create -n fitune python=3.11`, or `uv venv --python 3.11`.

## How safe

Safe: the old Python stays.

## Sources

https://github.com/pytorch/pytorch/blob/main/RELEASE.md
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.pip_builds import builds_not_on_index
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
TOPIC = "python"
PATTERNS = (
    r"Could not find a version that satisfies the requirement (?:torch|transformers|tokenizers)\b",
    r"No matching distribution found for (?:torch|transformers|tokenizers)\b",
    r"has no wheels with a matching Python (?:ABI|implementation|version)",
    r"requires a different Python: ",
    r"is not a supported wheel on this platform",
    r"Requires-Python >=?3\.\d+",
    r"module 'pkgutil' has no attribute 'ImpImporter'",
    r"TypeError: unsupported operand type\(s\) for \|: 'type' and 'NoneType'",
)


def read(log: Log) -> Iterator[Symptom]:
    """This Python is too old, too new or 32-bit, seen in a log."""
    if not builds_not_on_index(log):
        yield from matches(log, PATTERNS, confidence=0.9)


def examine(machine: Machine) -> Iterator[Symptom]:
    """Python below 3.10 or 32-bit."""
    version = ".".join(map(str, machine.python))
    if machine.python_bits == 32:
        yield Symptom(evidence=(_("Python {version} is a 32-bit build", version=version),))
    elif machine.python < (3, 10, 0):
        yield Symptom(evidence=(_("Python {version}; 3.10 or newer is needed", version=version),))
