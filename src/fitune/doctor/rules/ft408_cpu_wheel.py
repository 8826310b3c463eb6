"""A CPU build of PyTorch on a machine with a card

## What it says

`Torch not compiled with CUDA enabled`, or torch's version ends in `+cpu` though a driver is there.

## Why

pip on Windows, and any index that ends in `/cpu`, brings a wheel without CUDA; the driver has nothing to do
with it.

## How to know

`python -c "import torch; print(torch.__version__, torch.version.cuda)"` prints `+cpu` or `None`.

## How to fix

Install the wheel with CUDA that this driver runs; `fitune doctor` prints the exact pip line for it.

## How safe

Safe: only the wheel is replaced, nothing needs root, CUDA itself need not be installed.

## Sources

https://pytorch.org/get-started/locally/ ; https://download.pytorch.org/whl/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine, choose_wheel
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
PERSISTS = True
TOPIC = "torch"
PATTERNS = (r"Torch not compiled with CUDA enabled",)


def read(log: Log) -> Iterator[Symptom]:
    """A CPU build of PyTorch on a machine with a card, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)


def examine(machine: Machine) -> Iterator[Symptom]:
    """A torch without CUDA beside a driver."""
    build = machine.torch
    if build.state != "ok" or build.cuda or build.hip or machine.system == "macos" or not machine.driver.version:
        return
    wheel = choose_wheel(
        machine.driver.newest_cuda, tuple(d.compute_capability for d in machine.devices if d.compute_capability)
    )
    evidence = (
        _(
            "torch {version} has no CUDA; driver {driver} is there",
            version=build.version or "?",
            driver=machine.driver.version,
        ),
    )
    if wheel is None:
        yield Symptom(
            evidence=evidence,
            severity="warning",
            fixes=(
                Fix(
                    safety="display",
                    text=_("no wheel of today runs on this driver and card: train on the CPU, or on a rented card"),
                ),
            ),
        )
    else:
        text = _("install the wheel for CUDA {cuda}, which this driver runs", cuda=".".join(map(str, wheel.cuda)))
        yield Symptom(evidence=evidence, fixes=(Fix(safety="safe", text=text, command=wheel.pip_command),))
