"""A device-side assert without a name

## What it says

`CUDA error: device-side assert triggered`, with no line that says which assertion.

## Why

Almost always a label or a token id out of range; CUDA reports it late, at an innocent line, and the card is
unusable until Python restarts.

## How to know

Run the same batch on the CPU, or with `CUDA_LAUNCH_BLOCKING=1`: then the message names the index.

## How to fix

Check `0 <= label < num_labels` and the tokens' length (512) with `fitune check FILE`; restart Python before the
next try.

## How safe

Safe.

## Sources

huggingface/transformers#5611 ; https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT531", "FT532", "FT291"}
SAFETY = "safe"
COMMAND = "CUDA_LAUNCH_BLOCKING=1 python train.py"
PATTERNS = (r"device-side assert triggered", r"Creating MTGP constants failed")


def read(log: Log) -> Iterator[Symptom]:
    """A device-side assert without a name, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.85)
