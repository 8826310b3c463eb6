"""The NVIDIA driver is older than the CUDA of this PyTorch

## What it says

`The NVIDIA driver on your system is too old (found version 11070)`: the number means CUDA 11.7, the newest this
driver runs.

## Why

A wheel brings its own CUDA; the driver must know that major version (CUDA 12 wheels: driver 525 or newer; CUDA
13: 580 or newer).

## How to know

`nvidia-smi` prints the driver and its newest CUDA; `torch.version.cuda` the wheel's.

## How to fix

Install an older wheel that this driver runs (no root needed; `fitune doctor` prints the line), or have the
driver updated.

## How safe

Safe: the wheel is replaced. A driver update needs root and a reboot.

## Sources

pytorch/pytorch#4546 ; #37320 ; https://docs.nvidia.com/deploy/cuda-compatibility/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine, Wheel, choose_wheel, decode_cuda_number, driver_for_cuda, parse_version, runs_cuda
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
FOLLOWS = {"FT419"}
PERSISTS = True
TOPIC = "torch"
PATTERNS = (
    r"forward compatibility was attempted on non supported HW|Error 80[34]:",
    r"NVIDIA driver on your system is too old(?: \(found version (\d+)\))?",
    r"CUDA driver version is insufficient for CUDA runtime version",
    r"unsatisfied condition: (?:cuda>=|driver>=)[^\n]*(?:update your driver)?",
    r"provided PTX was compiled with an unsupported toolchain",
    r"cudaErrorInsufficientDriver|system has unsupported display driver / cuda driver combination",
)


def read(log: Log) -> Iterator[Symptom]:
    """The driver's number decoded, and the wheel for it."""
    hits = log.find(*PATTERNS)
    if not hits:
        return
    number = next((int(hit.match[1]) for hit in hits if hit.match.re.groups and hit.match[1]), None)
    if number is None:
        yield symptom(hits, confidence=0.93)
        return
    cuda = decode_cuda_number(number)
    title = _(
        "The NVIDIA driver is too old: {number} means CUDA {cuda} at most", number=number, cuda=".".join(map(str, cuda))
    )
    yield symptom(hits, confidence=0.97, title=title, fixes=(_advice(choose_wheel(cuda, ()), cuda),))


def _advice(wheel: Wheel | None, cuda: tuple[int, int]) -> Fix:
    newest = ".".join(map(str, cuda))
    if wheel is None:
        text = _(
            "no wheel of today runs on CUDA {cuda}: have the driver updated, or train on a rented card", cuda=newest
        )
        return Fix(safety="display", text=text)
    text = _(
        "install the wheel for CUDA {wheel}, which this driver (CUDA {cuda}) runs; no root needed",
        wheel=".".join(map(str, wheel.cuda)),
        cuda=newest,
    )
    return Fix(safety="safe", text=text, command=wheel.pip_command)


def examine(machine: Machine) -> Iterator[Symptom]:
    """The wheel's CUDA against the driver's."""
    newest, build = machine.driver.newest_cuda, machine.torch
    if newest is None or build.state != "ok" or not build.cuda or runs_cuda(newest, parse_version(build.cuda)):
        return
    capabilities = tuple(d.compute_capability for d in machine.devices if d.compute_capability)
    wheel = choose_wheel(newest, capabilities)
    needed = driver_for_cuda(parse_version(build.cuda), machine.system)
    evidence = _(
        "driver {driver} runs CUDA {newest} at most; torch {torch} brings CUDA {cuda}, which needs driver {needed}",
        driver=machine.driver.version or "?",
        newest=".".join(map(str, newest)),
        torch=build.version or "?",
        cuda=build.cuda,
        needed=needed or "?",
    )
    yield Symptom(evidence=(evidence,), fixes=(_advice(wheel, newest),))
