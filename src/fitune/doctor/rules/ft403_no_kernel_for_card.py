"""This PyTorch holds no machine code for the card

## What it says

`CUDA error: no kernel image is available for execution on the device`, or a warning that the card's sm is not
compatible.

## Why

A wheel is built for a list of architectures. New cards (RTX 50: sm_120) need a new wheel, old ones (K80: sm_37,
Pascal: sm_60/61, Volta: sm_70) have been dropped from new wheels. `is_available()` is True all the same.

## How to know

`torch.cuda.get_arch_list()` against the card's compute capability; `fitune doctor` compares them.

## How to fix

Install a wheel that has the card's architecture: `fitune doctor` prints the line (RTX 50: cu128 or newer;
Maxwell, Pascal, Volta: cu126).

## How safe

Safe: only the wheel is replaced.

## Sources

pytorch/pytorch#167244 ; #150733 ; #172352 ; #157517
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import (
    CPU_PIP_COMMAND,
    Machine,
    Wheel,
    arch_list_runs_on,
    choose_wheel,
    driver_for_cuda,
    parse_version,
    wheels,
)
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
PERSISTS = True
TOPIC = "torch"
PATTERNS = (
    r"(?:HIP|CUDA) error: invalid device function|hipErrorNoBinaryForGpu|device kernel image is invalid"
    r"|TensileLibrary.*GPU arch",
    r"invalid value for --gpu-architecture|Unsupported gpu architecture 'compute_\d+"
    r"|Value 'sm_\w+' is not defined for option",
    r"no kernel image is available for execution on the device",
    r"cudaErrorNoKernelImageForDevice",
    r"with CUDA capability sm_\d+ is not compatible with the current PyTorch installation",
    r"PyTorch no longer supports this GPU because it is too old",
)


def read(log: Log) -> Iterator[Symptom]:
    """This PyTorch holds no machine code for the card, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)


def examine(machine: Machine) -> Iterator[Symptom]:
    """The wheel's architecture list against each card."""
    build = machine.torch
    if build.state != "ok" or not build.cuda:
        return
    capabilities = tuple(d.compute_capability for d in machine.devices if d.compute_capability)
    arch = build.arch_list or _arch_of_wheel(build.cuda)
    for device in machine.devices:
        capability = device.compute_capability
        if capability is None or not arch or arch_list_runs_on(arch, capability):
            continue
        evidence = _(
            "card {index} {name} is sm_{sm}; torch {torch} has code for {arch}",
            index=device.index,
            name=device.name,
            sm="".join(map(str, capability)),
            torch=build.version or "?",
            arch=" ".join(arch),
        )
        wheel = choose_wheel(machine.driver.newest_cuda, capabilities) or choose_wheel(
            machine.driver.newest_cuda, (capability,)
        )
        yield Symptom(evidence=(evidence,), fixes=(_advice(wheel, machine, capability),))


def _arch_of_wheel(cuda: str) -> tuple[str, ...]:
    wheel = next((wheel for wheel in wheels() if wheel.cuda == parse_version(cuda)), None)
    return tuple(f"sm_{major}{minor}" for major, minor in wheel.arch) if wheel else ()


def _advice(wheel: Wheel | None, machine: Machine, capability: tuple[int, int]) -> Fix:
    if wheel is not None:
        text = _(
            "install the wheel for CUDA {cuda}, which has this card's architecture", cuda=".".join(map(str, wheel.cuda))
        )
        return Fix(safety="safe", text=text, command=wheel.pip_command)
    if any(w.runs_on(capability) for w in wheels()):
        oldest = min((w for w in wheels() if w.runs_on(capability)), key=lambda w: w.cuda)
        text = _(
            "the wheels for this card need CUDA {cuda}: have the driver updated to {driver} or newer",
            cuda=".".join(map(str, oldest.cuda)),
            driver=driver_for_cuda(oldest.cuda, machine.system) or "?",
        )
        return Fix(safety="display", text=text)
    return Fix(
        safety="safe",
        text=_("no PyTorch of today runs on this card: train on the CPU, or on a rented card"),
        command=CPU_PIP_COMMAND,
    )
