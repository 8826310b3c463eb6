"""One optimizer step that survives out-of-memory: split, stepper, oom. An island: torch only."""

from fitune.microbatch.split import Budget, MicroBatch, split
from fitune.microbatch.stepper import StepItems, Stepper, StepResult

__all__ = ["Budget", "MicroBatch", "StepItems", "StepResult", "Stepper", "split"]
