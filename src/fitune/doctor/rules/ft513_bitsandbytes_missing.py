"""bitsandbytes is missing, or finds no CUDA

## What it says

`requires bitsandbytes`, `CUDA Setup failed despite GPU being available`, or fitune's refusal of an 8-bit AdamW.

## Why

8-bit optimizers and 4-bit weights live in that package; an old one does not know this CUDA.

## How to know

`python -m bitsandbytes` tells what it finds.

## How to fix

Type `pip install -U bitsandbytes`, or choose `adamw_fused`: for BERT-sized models 8 bits save little.

## How safe

Rounding alone.

## Sources

fitune: hf/knobs
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"

PATTERNS = (
    r"requires? (?:the latest version of )?[`']?bitsandbytes|No package metadata was found for bitsandbytes",
    r"CUDA Setup failed despite (?:GPU|CUDA) being available|bitsandbytes was compiled without (?:GPU|CUDA) support",
    r"module 'bitsandbytes\S*' has no attribute",
    r"libbitsandbytes_\S+: cannot open shared object"
    r"|Configured CUDA binary not found at|No module named 'bitsandbytes'",
)


def read(log: Log) -> Iterator[Symptom]:
    """bitsandbytes is missing or finds no CUDA, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)
