"""fp16 is on and memory still runs out

## What it says

Mixed precision is switched on (`fp16=True`), and the run dies of out-of-memory all the same.

## Why

Autocast halves activations alone. Weights, gradients and AdamW's state stay fp32, and fp16 copies of the
weights are added; a text that is too long outweighs the saving. Logging to wandb or loader workers cost no GPU
memory.

## How to know

The log shows that half precision is in use, and the out-of-memory message.

## How to fix

Look at tokens per pass rather than at precision: `fitune plan FILE`; eager attention to sdpa and a token
budget save more than fp16 does.

## How safe

Attention kernel and micro-batch are exact.

## Sources

https://docs.pytorch.org/docs/stable/amp.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"

FP16 = (
    r"half precision backend|fp16\s*[=:]\s*True|--fp16\b"
    r"|mixed_precision['\"]?\s*[=:]\s*['\"]?fp16|GradScaler|autocast\("
)


def read(log: Log) -> Iterator[Symptom]:
    """Half precision and out of memory in one log."""
    oom = find_oom(log)
    if oom is not None and (hits := log.find(FP16)):
        yield symptom(hits[:1] + oom.hits[:1], confidence=0.7)
