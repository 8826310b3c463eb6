"""The heaviest step of the data first: what does not fit shows before step 1, not at the end of an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from transformers import TrainerCallback

from fitune.hf import Columns, Step


class Rehearsal(TrainerCallback):
    """Runs a step of the longest rows once, before the first step, and undoes it; the micro-batch is then known to fit.

    On a card alone: on a CPU the kernel ends a process that wants too much memory, and no retry helps.
    """

    def __init__(self, columns: Columns, batch_size: int) -> None:
        self.columns, self.batch_size = columns, batch_size
        self.trainer: Any = None
        self._done = False

    def on_step_begin(self, args: Any, state: Any, control: Any, **_rest: Any) -> None:
        if self._done or not worthwhile(args.device):
            return
        self._done = True
        step = heaviest_step(self.columns, self.batch_size)
        if step.total_weight:
            wrapped = self.trainer.model_wrapped
            wrapped.train()
            self.trainer.or_uncompiled(wrapped, lambda: self.trainer.stepper(wrapped).rehearse(step))


def worthwhile(device: Any) -> bool:
    """Whether running out of memory on ``device`` is something that one can go on from."""
    return device.type != "cpu"


def heaviest_step(columns: Columns, batch_size: int) -> Step:
    """The examples with the longest windows; of equal ones those with the most."""
    longest = np.maximum.reduceat(columns.lengths_W, columns.example_starts_E1[:-1])
    windows = np.diff(columns.example_starts_E1)
    order = np.lexsort((-windows, -longest))
    return Step(columns, order[: min(batch_size, len(order))])
