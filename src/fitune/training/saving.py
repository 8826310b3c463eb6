"""Saving a run while it trains, and going on from what was saved. What a state holds is written in ``state``."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from fitune.checkpoint import (
    Array,
    Checkpoint,
    NotSaved,
    PassedOver,
    Policy,
    Saved,
    Store,
    Writer,
    forecast,
    free_bytes,
)
from fitune.messages import _
from fitune.microbatch import retried
from fitune.training.callbacks import BestModel, Events, Interrupts, Stop
from fitune.training.room import Room, bytes_in
from fitune.training.state import (
    array_of,
    restore_best,
    restore_model,
    restore_optimizer,
    restore_random,
    state_of,
    tensors_of,
)

DEADLINE_EXIT = 75
BUDGET_EXIT = 76

# A save may cost this share of the time since the one before: copy, hash and write together.
_SHARE = 1 / 50


@dataclass(frozen=True)
class Saving:
    """When a run saves itself, and when it must end."""

    every_seconds: float = 30.0
    """Least time between two saves. One that takes t seconds comes after 50 t at the earliest: what a save costs is
    measured, so that a small model loses half a minute to a power cut and a large one pays no more than 2 %."""
    every_steps: int | None = None
    """After so many steps whatever the time; for tests."""
    each_epoch: bool = True
    """At the end of an epoch as well, where that is not too often."""
    policy: Policy = field(default_factory=lambda: Policy(latest=2))
    deadline: float | None = None
    """Seconds since the epoch: save and end then."""
    most_seconds: float | None = None
    """Save and end after so many seconds of this process."""
    disk_wait_seconds: float = 3600.0
    """How long a run pauses on a full disk before it ends."""


class Keeper(TrainerCallback):
    """Saves the Trainer's full state at intervals, at the end of epochs, and when the run is asked to stop."""

    def __init__(
        self,
        directory: Path,
        saving: Saving,
        events: Events,
        best: BestModel,
        interrupts: Interrupts,
        room: Room,
        facts: dict[str, Any],
    ) -> None:
        self.saving, self.events, self.best, self.interrupts, self.room = saving, events, best, interrupts, room
        self.store = Store(directory, saving.policy)
        self.writer = Writer(self.store, self._saved)
        self.facts = facts
        """Kept in every checkpoint: the Fit that the run began with."""
        self.trainer: Any = None
        self._copies: dict[str, Tensor] = {}
        self._begun = self._last_save = time.monotonic()
        self._here_seconds = self._cost_seconds = 0.0
        self._done: list[Saved] = []
        self._states_fit: bool | None = None

    # -- when -----------------------------------------------------------------------------------------------------

    def on_step_begin(self, args: Any, state: Any, control: Any, **_rest: Any) -> None:
        # Not earlier: the optimizer's state has just been allocated, so that its size is known and not guessed.
        if self._states_fit is None:
            self._tell_forecast()

    def on_step_end(self, args: Any, state: Any, control: Any, **_rest: Any) -> None:
        self._report()
        now, saving, stop = time.time(), self.saving, self.interrupts
        if saving.deadline is not None and now >= saving.deadline and stop.stop is None:
            stop.stop = Stop("deadline", DEADLINE_EXIT)
        if (
            saving.most_seconds is not None
            and time.monotonic() - self._begun >= saving.most_seconds
            and stop.stop is None
        ):
            stop.stop = Stop("budget", BUDGET_EXIT)
        if stop.stop is not None:
            control.should_training_stop = control.should_save = True
        elif state.global_step < state.max_steps and (self.writer.failed or self._due(state)):
            # The Trainer saves after it has evaluated: what a checkpoint says includes the step's evaluation.
            control.should_save = True

    def _due(self, state: Any) -> bool:
        if self.saving.every_steps:
            return state.global_step % self.saving.every_steps == 0
        waited = time.monotonic() - self._last_save
        if self.writer.busy or waited * _SHARE < self._cost_seconds:
            return False
        epoch_ends = self.saving.each_epoch and float(state.epoch or 0.1).is_integer()
        return epoch_ends or waited >= self.saving.every_seconds

    # -- saving ---------------------------------------------------------------------------------------------------

    def save(self, *_arguments: Any, **_named: Any) -> None:
        """Stands in for the Trainer's own ``_save_checkpoint``.

        Raises:
            NotSaved: the disk is full and stays full, or it refuses for good.
        """
        begin = time.monotonic()
        failed = self._wait()
        tensors = tensors_of(self.trainer)
        if self.interrupts.stop is None and not self._fits_beside(_bytes_of(tensors)):
            self._last_save = time.monotonic()
            return
        arrays = retried(lambda: {name: self._copied(name, tensor) for name, tensor in tensors.items()})
        state, step = state_of(self.trainer, self.best, self.facts), self.trainer.state.global_step

        def write() -> None:
            self.writer.submit(step, arrays, state)
            self.writer.wait()

        if failed is not None:
            self.room.insist(_raising(failed), again=write)
        elif self.interrupts.stop is not None:
            self.room.insist(write)
        else:
            self.writer.submit(step, arrays, state)
        self._report()
        self._here_seconds = time.monotonic() - begin
        self._last_save = time.monotonic()

    def close(self) -> None:
        """Wait for what is being written. A failure now is told and not raised: the run itself is done."""
        if (failed := self._wait()) is not None:
            self.room.tell(failed)
        self._report()

    def rescue(self) -> None:
        """Save where the run stands, before a step that cannot be done: weights and all else are as before it."""
        try:
            self.save()
        except NotSaved:
            return  # told already; what was saved before stays
        self.close()

    def _wait(self) -> NotSaved | None:
        """What kept the save before this one off the disk."""
        try:
            self.writer.wait()
        except NotSaved as error:
            return error
        return None

    def _fits_beside(self, needed_bytes: int) -> bool:
        """Where states do not fit for sure, one is saved only if the best model still fits beside it."""
        return self._states_fit is not False or (
            free_bytes(self.store.directory) >= needed_bytes + 2 * self.room.model_bytes
        )

    def _saved(self, saved: Saved) -> None:
        # In the writer's thread: told by the training thread, in order with the other events.
        self._done.append(saved)

    def _report(self) -> None:
        while self._done:
            saved = self._done.pop(0)
            self._cost_seconds = self._here_seconds + saved.measured_seconds
            place = f"{saved.path.parent.name}/{saved.path.name}"
            data = {
                "path": place,
                "bytes": saved.nbytes,
                "seconds": round(saved.measured_seconds, 3),
                "of_step": saved.step,
            }
            self.events.emit("checkpoint", self.trainer.state, **data)

    def _tell_forecast(self) -> None:
        """Before the first step: does what the policy keeps fit on the disk? Keep less where it does not."""
        directory = self.store.directory
        found = forecast(
            self.saving.policy,
            _bytes_of(tensors_of(self.trainer)),
            free_bytes(directory) + bytes_in(directory) + bytes_in(self.room.directory / "model"),
            model_bytes=self.room.model_bytes,
        )
        self._states_fit = found.states_fit
        self.store.policy = found.policy
        if found.finding is not None:
            self.events.emit("warning", self.trainer.state, code=found.finding.code, text=found.finding.title)

    def _copied(self, name: str, tensor: Tensor) -> Array:
        kept = self._copies.get(name)
        if kept is None or kept.shape != tensor.shape or kept.dtype != tensor.dtype:
            kept = self._copies[name] = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        kept.copy_(tensor.detach())
        return array_of(kept)

    # -- going on -------------------------------------------------------------------------------------------------

    @contextmanager
    def attached(self, trainer: Any, checkpoint: Checkpoint | None) -> Generator[str | None]:
        """Hook into ``trainer``; yields what to give as ``resume_from_checkpoint``."""
        self.trainer = trainer
        trainer._save_checkpoint = self.save
        if checkpoint is None:
            yield None
            return
        restore_best(self.best, checkpoint.state["best"])
        # The Trainer asks for these in turn; each restores its part from the verified checkpoint.
        trainer._load_from_checkpoint = _ignoring(lambda: restore_model(trainer, checkpoint))
        trainer._load_optimizer_and_scheduler = _ignoring(lambda: restore_optimizer(trainer, checkpoint))
        trainer._load_scaler = _ignoring(lambda: None)
        trainer._load_rng_state = _ignoring(lambda: restore_random(checkpoint))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "trainer_state.json").write_text(json.dumps(checkpoint.state["trainer"]), encoding="utf-8")
            yield folder

    def tell_start(self, trainer: Any, checkpoint: Checkpoint | None, passed_over: list[PassedOver]) -> None:
        """Say where the run goes on, and which damaged checkpoints were passed over."""
        for bad in passed_over:
            text = _("checkpoint {name} is damaged and passed over: {reason}", name=bad.path.name, reason=bad.reason)
            self.events.emit("warning", trainer.state, code="FT602", text=text)
        if checkpoint is not None:
            trainer.state.global_step, trainer.state.epoch = checkpoint.step, checkpoint.state["trainer"]["epoch"]
            self.events.emit("resumed", trainer.state, checkpoint=checkpoint.path.name, step=checkpoint.step)


def _bytes_of(tensors: dict[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _raising(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def _ignoring(call: Callable[[], None]) -> Callable[..., None]:
    """``call`` with whatever arguments this version of the Trainer gives."""

    def called(*_arguments: Any, **_named: Any) -> None:
        call()

    return called


def steps_left(checkpoint: Checkpoint, steps_total: int) -> bool:
    """Whether there are steps left to run."""
    return checkpoint.step < steps_total and not checkpoint.state["best"]["stopped_early"]
