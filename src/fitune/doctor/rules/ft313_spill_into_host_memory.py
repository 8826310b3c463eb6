"""The card spills into host memory: training crawls instead of failing

## What it says

Steps became many times slower without an error, on Windows or WSL2.

## Why

Windows' WDDM driver moves what does not fit into host memory over PCIe ("shared GPU memory") instead of
reporting out-of-memory.

## How to know

Task Manager shows shared GPU memory in use; seconds per step rise five- to fifty-fold.

## How to fix

Use a smaller micro-batch until shared memory stays empty, and set "CUDA - Sysmem Fallback Policy: Prefer No
Sysmem Fallback" in the NVIDIA control panel, so that fitune sees the real limit.

## How safe

Exact: the micro-batch does not change what is learned.

## Sources

https://nvidia.custhelp.com/app/answers/detail/a_id/5490
"""

from collections.abc import Iterator

from fitune.doctor.log import Hit, Log, symptom
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine

SEVERITY = "warning"
TOPIC = "cards"

WINDOWS = r"[A-Z]:\\|/mnt/[a-z]/|WSL|microsoft-standard|Windows"


def read(log: Log) -> Iterator[Symptom]:
    """Steps that became eight times slower, on Windows or WSL2, or shared GPU memory named in the log."""
    shared = log.find(
        r"shared GPU memory|共享 ?(?:GPU ?)?(?:内存|显存)|sysmem fallback|\bshared\W{1,3}[1-9][\d.]* ?Gi?B"
    )
    rates: list[tuple[float, Hit]] = []
    for hit in log.find(r"(\d+(?:\.\d+)?)\s*(s/it|it/s)"):
        value = float(hit.match[1])
        if value > 0:
            rates.append((value if hit.match[2].lower() == "s/it" else 1 / value, hit))
    if shared:
        yield symptom(shared, confidence=0.8)
    elif len(rates) >= 6 and log.has(WINDOWS):
        third = len(rates) // 3
        early = sorted(rate for rate, _hit in rates[:third])[third // 2]
        late = sorted(rate for rate, _hit in rates[-third:])[third // 2]
        if late > 8 * early and late > 1:
            yield symptom([rates[0][1], rates[-1][1]], confidence=0.75)


def examine(machine: Machine) -> Iterator[Symptom]:
    """WSL2 or a WDDM card: said once, as a note."""
    if machine.devices and (machine.wsl == 2 or any(device.driver_model == "WDDM" for device in machine.devices)):
        where = "WSL2" if machine.wsl == 2 else "WDDM"
        yield Symptom(evidence=(where,), severity="note", confidence=0.9)
