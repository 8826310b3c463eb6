"""One optimizer step that survives out-of-memory: split, stepper, oom. An island: torch only."""

from fitune.microbatch.governor import Change
from fitune.microbatch.knobs import DoesNotFit, Knob
from fitune.microbatch.meter import Meter, meter_for
from fitune.microbatch.oom import OutOfMemory, out_of_memory
from fitune.microbatch.optimizer import apply_optimizer, clip_gradients, prepare_optimizer
from fitune.microbatch.ranks import RankLost
from fitune.microbatch.split import Budget, MicroBatch, split
from fitune.microbatch.stepper import StepItems, Stepper, StepResult
from fitune.microbatch.surviving import Sweep, retried

__all__ = [
    "Budget",
    "Change",
    "DoesNotFit",
    "Knob",
    "Meter",
    "MicroBatch",
    "OutOfMemory",
    "RankLost",
    "StepItems",
    "StepResult",
    "Stepper",
    "Sweep",
    "apply_optimizer",
    "clip_gradients",
    "meter_for",
    "out_of_memory",
    "prepare_optimizer",
    "retried",
    "split",
]
