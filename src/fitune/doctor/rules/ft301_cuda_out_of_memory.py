"""CUDA out of memory: one pass needs more than the card has left

## What it says

PyTorch's allocator asked the driver for a block and got none: `CUDA out of memory. Tried to allocate ...`.

## Why

Weights, gradients and optimizer state take a fixed part (about 16 bytes per parameter with AdamW in fp32);
activations grow with windows x tokens per pass, and with the square of the length under eager attention.
Reinstalling CUDA or the system changes none of it.

## How to know

The message names the card, what is allocated and what is free. When another finding stands beside this one, it
is the likelier cause.

## How to fix

Let fitune choose the micro-batch (`fitune plan FILE`, with your training file), or in a script lower
`per_device_train_batch_size` and raise `gradient_accumulation_steps` by the same factor; use
`attn_implementation="sdpa"`.

## How safe

Micro-batch and attention kernel change nothing that is learned, apart from rounding. A smaller batch size or a
shorter `max_length` does.

## Sources

https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management ; huggingface/transformers#11848
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom
from fitune.doctor.simulator import fitting_settings
from fitune.doctor.symptom import Symptom

SEVERITY = "error"


def read(log: Log) -> Iterator[Symptom]:
    """The allocator's own message, in the shapes of PyTorch 1.x and 2.x."""
    oom = find_oom(log)
    if oom is None:
        return
    fixes = fitting_settings(log)
    yield symptom(oom.hits, confidence=0.8, fixes=fixes, title=oom.summary())
