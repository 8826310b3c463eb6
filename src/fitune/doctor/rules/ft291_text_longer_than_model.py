"""Texts are longer than the model can read

## What it says

`Token indices sequence length is longer than the specified maximum sequence length for this model (1017 >
512)`; at the first forward pass a size error with 512, or an index error.

## Why

BERT has 512 positions. Without `truncation=True` a longer row crashes; with it everything past the limit is
thrown away silently, entities included.

## How to know

The numbers in brackets are this row's length and the limit.

## How to fix

Split into overlapping windows instead of cutting: `fitune train` does, in training, evaluation and prediction.
In a script: `truncation=True, max_length=512, stride=64, return_overflowing_tokens=True`.

## How safe

Windows lose nothing. Truncation drops text and labels.

## Sources

huggingface/transformers#1791 ; #5611 ; netease-youdao/BCEmbedding#62
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.raised import went_on
from fitune.doctor.symptom import Symptom

SEVERITY = "warning"
SAFETY = "safe"
COMMAND = "fitune check FILE"

CRASH = (
    r"(?:expanded size of the tensor|size of tensor a) \((\d+)\) must match the "
    r"(?:existing size|size of tensor b) \((?:512|514|1024|1026|2048|4096|4098|8192)\)"
    r"|[Ss]equence length \(?\d+\)? (?:exceeds|is longer than|cannot exceed).{0,40}(?:max|position)"
    r"|size of tensor a \((?:512|514)\) must match|indices\[[\d, ]*\] = \d+ is not in \[0, (?:512|514|1024)\)"
)


def read(log: Log) -> Iterator[Symptom]:
    """The tokenizer's warning, or the crash that follows it."""
    warned = log.find(
        r"Token indices sequence length is longer than the specified maximum|Token indices "
        r"sequence length (?:is )?too long|sequence length is longer than the specified maximum"
    )
    crashed = log.find(CRASH)
    later = log.find(r"index out of range in self|srcIndex < srcSelectDimSize")
    if crashed or (warned and later):
        yield symptom(crashed + warned + later, confidence=0.98, severity="error")
    elif warned:
        # Said once when whole texts are tokenised; a training that goes on has cut them into pieces since.
        severity = "note" if went_on(log, warned[-1].line.number) else None
        yield symptom(warned, confidence=0.9, severity=severity)
