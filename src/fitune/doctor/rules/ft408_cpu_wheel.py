"""A CPU build of PyTorch on a machine with a card

## What it says

`Torch not compiled with CUDA enabled`, or torch's version ends in `+cpu` though a driver is there; training runs on
the processor, many times as slowly.

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

from fitune.doctor.log import Log, matches, symptom
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine, choose_wheel
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
PERSISTS = True
TOPIC = "torch"
PATTERNS = (
    r"Torch not compiled with CUDA enabled",
    r"module 'torch\._C' has no attribute '_cuda_|torch\.cuda\.\w+Tensor is not available",
)
WITHOUT_CUDA = (
    r"\b(?:torch|pytorch)(?![a-z])(?: version)?['\"]?[ :=,\w]{0,24}?\d+\.\d+(?:\.\d+)?\+cpu\b|^\d+\.\d+\.\d+\+cpu\b",
    r"^pytorch\s+\d\S*\s+\S*_cpu_\d",
    r"CUDA used to build PyTorch: None|(?:torch\.version\.cuda|cuda[ _-]?(?:build|version))['\"]?\W{0,3}\s*None\b",
)
# What only a machine with an NVIDIA card prints.
CARD = (
    r"\|\s+\d+\s+(?:NVIDIA|Tesla|GeForce|Quadro)\b|^GPU \d+: .*\(UUID"
    r"|nvidia driver(?: version)?:? \d{3}\.|NVIDIA [^,\n]{3,40}, \d{3}\.\d+"
    r"|(?:GPU \d|VGA|3D controller|显卡).{0,60}(?:NVIDIA|GeForce|Tesla|RTX)|Driver Version: \d{3}\."
)
SEES_CUDA = r"cuda(?:\.is_available\(\)|[ _]available)['\"]?\W{0,3}\s*True|device['\"]?\W{0,3}\s*cuda\b"


def read(log: Log) -> Iterator[Symptom]:
    """A CPU build of PyTorch on a machine with a card, seen in a log."""
    if found := [*matches(log, PATTERNS, confidence=0.95)]:
        yield from found
    elif (without := log.find(*WITHOUT_CUDA)) and (cards := log.find(CARD)) and not log.has(SEES_CUDA):
        yield symptom([without[0], cards[0]], confidence=0.9)


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
