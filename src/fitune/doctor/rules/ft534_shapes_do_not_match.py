"""The shapes of inputs and labels do not match

## What it says

`Expected input batch_size (16) to match target batch_size (2048)`, `mat1 and mat2 shapes cannot be multiplied`,
`Target size must be the same as input size`.

## Why

A head for whole texts got labels per token (or the reverse), multi-label targets are not one-hot floats, or
`num_labels` differs from the data.

## How to know

The two numbers: a factor equal to the length means token labels.

## How to fix

Use the head that fits the task: `AutoModelForTokenClassification` for entities,
`AutoModelForSequenceClassification` for texts; for multi-label `problem_type="multi_label_classification"` with
float targets.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/tasks/token_classification
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
BROADCAST = r"size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton dimension"
PATTERNS = (
    r"argument 'input' \(position 1\) must be Tensor, not tuple",
    r"first two dimensions of (?:emissions|logits) and (?:tags|mask) must match|expected last dimension of emissions",
    r"Boolean value of Tensor with more than one value is ambiguous|Sizes of tensors must match except in dimension",
    r"Expected size for first two dimensions of batch2|too many indices for tensor of dimension"
    r"|Dimension out of range \(expected to be in range",
    r"doesn't match the broadcast shape|shape of the mask .* does not match|number of dims don't match in permute",
    r"Using a target size .* that is different to the input size|size mismatch, (?:m1|got input)"
    r"|input\.size\(-1\) must be equal to input_size",
    r"Expected input batch_size \(\d+\) to match target batch_size \(\d+\)",
    r"returned an invalid gradient at index \d+ - got|Expected more than 1 value per channel when training",
    r"must have the same number of dimensions as|the number of sizes provided .* must be greater or equal",
    r"expected \dD (?:or \dD )?input \(got|size of tags and mask must match",
    r"Shapes? \(.*\) and \(.*\) are incompatible",
    r"mat1 and mat2 shapes cannot be multiplied",
    r"Target size \(.*\) must be (?:the )?same as input size",
    r"shape '\[[-\d, ]+\]' is invalid for input of size",
    r"Expected target size \[.*\], got|only batches of spatial targets supported|multi-target not supported",
)


def read(log: Log) -> Iterator[Symptom]:
    """The shapes of inputs and labels do not match, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)
    # Others know what of theirs does not match: positions (FT291), the optimizer's state (FT627).
    yield from matches(log, (BROADCAST,), confidence=0.7)
