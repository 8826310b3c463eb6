"""A parameter got no gradient on one of the cards

## What it says

`Expected to have finished reduction in the prior iteration before starting a new one`.

## Why

DistributedDataParallel waits for the gradient of every trained parameter; the pooler or a second head was not
used in this pass.

## How to know

The message lists the indices of the parameters.

## How to fix

Set `ddp_find_unused_parameters=True`, or freeze what is not used.

## How safe

Exact, a little slower.

## Sources

https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"Expected to mark a variable ready only once|It is recommended to enable `?find_unused_parameters",
    r"Expected to have finished reduction in the prior iteration",
)


def read(log: Log) -> Iterator[Symptom]:
    """A parameter got no gradient on one of the cards, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
