"""PyTorch 2.6 and newer refuse to unpickle this checkpoint

## What it says

`Weights only load failed`, `WeightsUnpickler error: Unsupported global: GLOBAL
numpy._core.multiarray._reconstruct`, often at `rng_state.pth`.

## Why

`torch.load` now loads plain tensors alone by default; older checkpoints hold NumPy objects in their random
state or arguments.

## How to know

The traceback ends in `_load_rng_state`, or in an own `torch.load`.

## How to fix

For your own checkpoint delete `rng_state*.pth` in that folder and resume (the shuffle order then differs), or
update transformers to 4.57 or newer, which reads it.

## How safe

Unsafe: the data order after resuming differs slightly. Never load a stranger's file with `weights_only=False`.

## Sources

huggingface/transformers#34631 ; modelscope/ms-swift#5235
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "unsafe"
PATTERNS = (
    r"Can't get attribute '\w+' on <module '__main__'(?! \(built-in\))",
    r"Weights only load failed|WeightsUnpickler error|weights_only.*Unsupported (?:global|class|operand)",
)


def read(log: Log) -> Iterator[Symptom]:
    """PyTorch 2.6 and newer refuse to unpickle this checkpoint, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
