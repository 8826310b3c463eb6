"""transformers refuses .bin weights on an old PyTorch

## What it says

`Due to a serious vulnerability issue in torch.load ... require users to upgrade torch to at least v2.6`.

## Why

`pytorch_model.bin` is a pickle that could run code (CVE-2025-32434); transformers loads it on torch 2.6 and
newer alone. safetensors files are not affected.

## How to know

The model's folder has `pytorch_model.bin` and no `model.safetensors`.

## How to fix

Upgrade torch to 2.6 or newer, or use the safetensors weights of the same model (`hf download MODEL
model.safetensors`).

## How safe

Safe.

## Sources

https://nvd.nist.gov/vuln/detail/CVE-2025-32434
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (r"serious vulnerability issue in `?torch\.load`?|CVE-2025-32434",)


def read(log: Log) -> Iterator[Symptom]:
    """transformers refuses .bin weights on an old PyTorch, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.98)
