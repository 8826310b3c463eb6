"""Out of memory in the optimizer: its state is allocated at the first step

## What it says

The traceback ends in `torch/optim/...` (or `optimizer.step()`), usually at step 0 or 1.

## Why

AdamW allocates two more copies of every trained parameter at its first step, and the foreach implementation
about one copy of temporaries. Forward and backward had already fitted.

## How to know

The frames name `optim/adamw.py`, `_init_group` or `_multi_tensor_adamw`; the progress bar stands at 0 or 1.

## How to fix

Use `optim="adamw_torch_fused"` (no temporaries) and a smaller micro-batch; when the states alone do not fit,
8-bit AdamW or LoRA (`fitune plan FILE` says which).

## How safe

Fused AdamW and micro-batch are exact. 8-bit states round; LoRA learns something else.

## Sources

https://docs.pytorch.org/docs/stable/optim.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
SETTINGS = {"optimizer": "adamw_fused"}

FRAME = (
    r'File ".*torch[\\/]optim[\\/](?:adam|adamw|sgd|optimizer|_multi|lamb|adagrad'
    r'|adafactor)\w*\.py"|_init_group|_multi_tensor_adamw?|optimizer\.step\('
)


def read(log: Log) -> Iterator[Symptom]:
    """Out of memory with the optimizer's frames just above it."""
    oom = find_oom(log)
    if oom is None:
        return
    frames = oom.frames(log, FRAME)
    if frames and not oom.frames(log, r"evaluation_loop|prediction_step"):
        step = oom.step
        yield symptom(frames + oom.hits[:1], confidence=0.95 if step is None or step <= 2 else 0.75)
