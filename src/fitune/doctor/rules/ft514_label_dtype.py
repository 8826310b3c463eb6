"""Labels have the wrong number type

## What it says

`expected scalar type Long but found Float`, `not implemented for 'Int'`, `result type Float can't be cast`.

## Why

Class labels must be 64-bit integers, multi-label targets floats; a CSV with an empty cell makes the column
float.

## How to know

`dataset.features["label"]` or `df.label.dtype`.

## How to fix

Convert once: `df["label"].astype(int)` for classes, `torch.float` for multi-label targets.

## How safe

Safe; look at the empty cells first.

## Sources

https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"expected (?:object of )?scalar type (?:Long|Float|Int) but (?:found|got)",
    r"Expected object of type torch\.\S*(?:Long|Float|Int)Tensor but found type",
    r"could not convert string to (?:float|Float)|can't convert np\.ndarray of type numpy\.(?:object_|str_)",
    r"\"\w+\" not implemented for '(?:Long|Int|Short|Byte|Bool)'|expected input to have type \w+ but got",
    r"Found dtype \w+ but expected \w+",
    r"expected (?:Long|Float|Int) \(got \w+\)",
    r"Expected tensor for argument #\d+ '\w+' to have (?:one of the following )?scalar types?:? .*; but got",
    r"(?:nll_loss\w*|cross_entropy\w*|host_softmax)\S* not implemented for '(?:Float|Int|Bool|Short)'",
    r"result type Float can't be cast to the desired output type|Expected floating point type for target",
)


def read(log: Log) -> Iterator[Symptom]:
    """Labels have the wrong number type, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
