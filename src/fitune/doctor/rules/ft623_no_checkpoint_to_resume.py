"""There is no checkpoint to resume from

## What it says

`No valid checkpoint found in output directory`, `Can't find a valid checkpoint at ...`.

## Why

The folder is empty, holds only a final model or an adapter, or the run ended before its first save.

## How to know

`ls output_dir/checkpoint-*`; a resumable one has `trainer_state.json` and `optimizer.pt`.

## How to fix

Resume only when there is one: `resume_from_checkpoint=get_last_checkpoint(output_dir)` gives None otherwise;
`fitune train` starts or resumes by itself.

## How safe

Safe.

## Sources

huggingface/transformers#15341 ; shibing624/MedicalGPT#91
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"No such file or directory: '[^']*checkpoint-\d+[\\/]+(?:trainer_state\.json|optimizer\.pt|rng_state\S*)'",
    r"No valid checkpoint found in output directory",
    r"Can'?t find a valid checkpoint at",
)


def read(log: Log) -> Iterator[Symptom]:
    """There is no checkpoint to resume from, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
