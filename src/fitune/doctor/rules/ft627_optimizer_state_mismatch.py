"""The optimizer's state belongs to other parameters

## What it says

`loaded state dict contains a parameter group that doesn't match the size of optimizer's group`.

## Why

Layers were frozen or thawed, the optimizer was changed, or the head got another size between the runs.

## How to know

The numbers of parameters differ between the two runs.

## How to fix

Load only the weights (`from_pretrained(checkpoint)`) and start a new optimizer, or go back to the old settings
to resume. fitune keeps the state by parameter name.

## How safe

Unsafe: a new optimizer warms up again.

## Sources

kohya-ss/sd-scripts#378 ; STVIR/pysot#92
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "unsafe"
IN_OPTIMIZER = r"torch[\\/]optim[\\/]\w+\.py|exp_avg\.(?:mul_|lerp_)|_foreach_(?:mul|lerp)_"
PATTERNS = (r"parameter group that doesn'?t match the size of optimizer'?s group|different number of parameter groups",)


def read(log: Log) -> Iterator[Symptom]:
    """The optimizer's state belongs to other parameters, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
    # The state of the old head meets the gradient of the new one.
    if log.has(IN_OPTIMIZER):
        yield from matches(log, (r"size of tensor a \(\d+\) must match the size of tensor b",), confidence=0.9)
