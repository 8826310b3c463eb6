"""A tracker (wandb, swanlab) wants a key or a network

## What it says

`api_key not configured (no-tty)`, `wandb.errors.errors.UsageError`, `CommError`, `swanlab` asking for a key.

## Why

The Trainer reports to every tracker that is installed; without a login or without network it raises.

## How to know

`pip show wandb swanlab`.

## How to fix

Switch it off: `report_to="none"` in TrainingArguments, or `export WANDB_MODE=offline` before the command.

## How safe

Safe: nothing that is learned changes.

## Sources

https://docs.wandb.ai/guides/track/environment-variables
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"api_key not configured|wandb\.errors\.\S*(?:UsageError|CommError"
    r"|AuthenticationError)|swanlab\S*(?:KeyFileError|ApiError|AuthenticationError)",
)


def read(log: Log) -> Iterator[Symptom]:
    """A tracker (wandb, swanlab) wants a key or a network, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
