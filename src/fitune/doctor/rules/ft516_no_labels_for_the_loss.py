"""The model got no labels, or columns under other names

## What it says

`The model did not return a loss from the inputs, only the following keys: logits`, `No columns in the dataset
match the model's forward method signature`, `You have to specify either input_ids or inputs_embeds`,
`Invalid key: 7 is out of bounds for size 0`.

## Why

The label column is not called `labels` (or `label`), or tokenising was never applied, so the Trainer removed
every column.

## How to know

`trainer.train_dataset[0].keys()`.

## How to fix

Rename the column: `dataset.rename_column("类别", "labels")`, and check that `map(tokenize)` was assigned to the
variable that is trained on.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/main_classes/trainer
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"forward\(\) got an unexpected keyword argument '(?!num_items)\w+'"
    r"|forward\(\) missing \d+ required positional argument",
    r"'NoneType' object has no attribute 'backward'|The batch received was empty, your model won't be able to train",
    r"KeyError: 'loss'|unsupported operand type\(s\) for /=?: 'NoneType' and 'int'",
    r"The model did not return a loss from the inputs",
    r"Invalid key: .{1,40} is out of bounds for size 0\b|Index \S+ out of range for dataset of size 0\b",
    r"No columns in the dataset match the model's forward method signature",
    r"You (?:have to|must) specify (?:either|exactly one of) input_ids"
    r"|You should supply an encoding or a list of encodings to this method",
)


def read(log: Log) -> Iterator[Symptom]:
    """The model got no labels, or columns under other names, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
