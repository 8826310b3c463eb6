"""Out of memory after resuming with another batch size

## What it says

The run went on from a checkpoint, with settings other than those it was started with.

## Why

On resuming, the stock Trainer takes the arguments of the new command line; a larger batch, or a loaded
optimizer state that lies on the card twice, no longer fits.

## How to know

The Trainer warns: `arguments do not match the ones in the trainer_state.json`.

## How to fix

Resume with the batch size of the first run (the warning names both), or let `fitune train` go on: it stores the
job with the run and needs no arguments.

## How safe

Going back to the first batch size is safe; keeping the new one changes what is learned.

## Sources

huggingface/transformers#35438 ; https://huggingface.co/docs/transformers/main_classes/trainer
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"


def read(log: Log) -> Iterator[Symptom]:
    """Out of memory in a log that shows a resume."""
    oom = find_oom(log)
    if oom is None or not oom.resumed:
        return
    named = log.find(
        r"(?:train_batch_size|batch_size|gradient_accumulation_steps).*\(from args\) != ",
        r"arguments do not match the ones in the .?trainer_state\.json",
    )
    resumed = log.find(
        r"Continuing training from|resume_from_checkpoint[=: ]+\S*checkpoint-\d"
        r"|Loading model from \S*checkpoint|Resuming (?:training )?from|从检查点"
    )
    yield symptom((named or resumed) + oom.hits[:1], confidence=0.96 if named else 0.82)
