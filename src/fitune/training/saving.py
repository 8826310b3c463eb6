"""Saving a run while it trains, and going on from what was saved: bit for bit on a CPU.

A checkpoint holds weights, optimizer state by parameter name, scheduler, generators, position in the data (the order is
a function of seed and epoch), early stopping, loss scale and the micro-batch budget. Nothing is pickled.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
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
from fitune.values import Refusal

DISK_FULL_EXIT = 74
DEADLINE_EXIT = 75
BUDGET_EXIT = 76

# A save may cost this share of the time since the one before: copy, hash and write together.
_SHARE = 1 / 50
_TYPES: dict[torch.dtype, str] = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


@dataclass(frozen=True)
class Saving:
    """When a run saves itself, and when it must end."""

    every_seconds: float = 300.0
    """Least time between two saves; one that is costly (a large model, a slow disk) comes more rarely."""
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
        facts: dict[str, Any],
    ) -> None:
        self.saving, self.events, self.best, self.interrupts = saving, events, best, interrupts
        self.store = Store(directory, saving.policy)
        self.writer = Writer(self.store, self._saved)
        self.facts = facts
        """Kept in every checkpoint: the Fit that the run began with."""
        self.trainer: Any = None
        self._copies: dict[str, Tensor] = {}
        self._begun = self._last_save = time.monotonic()
        self._cost_seconds = 0.0
        self._done: list[Saved] = []
        self._forecast_made = False

    # -- when -----------------------------------------------------------------------------------------------------

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
        elif state.global_step < state.max_steps and self._due(state):
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
        """Stands in for the Trainer's own ``_save_checkpoint``."""
        begin = time.monotonic()
        self._insist(self.writer.wait)
        tensors = self._tensors()
        arrays = retried(lambda: {name: self._copied(name, tensor) for name, tensor in tensors.items()})
        state, step = self._state(), self.trainer.state.global_step
        self._tell_forecast(sum(array.nbytes for array in arrays.values()))
        self._insist(lambda: self.writer.submit(step, arrays, state))
        if self.interrupts.stop is not None:
            self._insist(self.writer.wait, again=lambda: self.writer.submit(step, arrays, state))
            self._report()
        self._cost_seconds = time.monotonic() - begin
        self._last_save = time.monotonic()

    def close(self) -> None:
        """Wait for what is being written. A failure now is told and not raised: the run itself is done."""
        try:
            self.writer.wait()
        except NotSaved as error:
            self._warn(error)
        self._report()

    def _insist(self, save: Callable[[], None], again: Callable[[], None] | None = None) -> None:
        """On a full disk: tell, wait for room, go on; end the run when none comes."""
        end, told = time.monotonic() + self.saving.disk_wait_seconds, False
        while True:
            try:
                return save()
            except NotSaved as error:
                if not told:
                    self._warn(error)
                    told = True
                if not error.full or time.monotonic() > end or self.interrupts.stop is not None:
                    self.interrupts.stop = self.interrupts.stop or Stop("disk", DISK_FULL_EXIT)
                    self.trainer.control.should_training_stop = True
                    return None
                time.sleep(min(5.0, self.saving.disk_wait_seconds / 10))
                if again is not None:
                    save = again

    def _warn(self, error: Refusal) -> None:
        self.events.emit("warning", self.trainer.state, code=error.code, text=str(error))

    def _saved(self, saved: Saved) -> None:
        # In the writer's thread: told by the training thread, in order with the other events.
        self._done.append(saved)

    def _report(self) -> None:
        while self._done:
            saved = self._done.pop(0)
            self._cost_seconds = max(self._cost_seconds, saved.measured_seconds)
            place = f"{saved.path.parent.name}/{saved.path.name}"
            data = {
                "path": place,
                "bytes": saved.nbytes,
                "seconds": round(saved.measured_seconds, 3),
                "of_step": saved.step,
            }
            self.events.emit("checkpoint", self.trainer.state, **data)

    def _tell_forecast(self, checkpoint_bytes: int) -> None:
        """Once: whether what the policy keeps fits on the disk; keep less where it does not."""
        if self._forecast_made:
            return
        self._forecast_made = True
        found = forecast(self.saving.policy, checkpoint_bytes, free_bytes(self.store.directory))
        if found.finding is not None:
            self.store.policy = found.policy
            self.events.emit("warning", self.trainer.state, code=found.finding.code, text=found.finding.title)

    def _copied(self, name: str, tensor: Tensor) -> Array:
        kept = self._copies.get(name)
        if kept is None or kept.shape != tensor.shape or kept.dtype != tensor.dtype:
            kept = self._copies[name] = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
        kept.copy_(tensor.detach())
        data = memoryview(kept.reshape(-1).view(torch.uint8).numpy())  # pyright: ignore[reportArgumentType] if kept.numel() else memoryview(b"")
        return Array(_TYPES[kept.dtype], tuple(kept.shape), data)

    def _tensors(self) -> dict[str, Tensor]:
        trainer = self.trainer
        tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
        for name, values in _optimizer_state(trainer).items():
            tensors |= {f"optimizer.{name}.{k}": v for k, v in values.items() if isinstance(v, Tensor)}
        tensors["random.torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        return tensors

    def _state(self) -> dict[str, Any]:
        trainer, best = self.trainer, self.best
        optimizer = _inner(trainer.optimizer)
        kind, keys, *rest = np.random.get_state()
        python_version, python_values, gauss = random.getstate()
        return {
            "trainer": json.loads(json.dumps(_trainer_state(trainer.state))),
            "optimizer": {
                name: {k: v for k, v in values.items() if not isinstance(v, Tensor)}
                for name, values in _optimizer_state(trainer).items()
            },
            "groups": [_plain({k: v for k, v in group.items() if k != "params"}) for group in optimizer.param_groups],
            "scheduler": _plain(trainer.lr_scheduler.state_dict()),
            "random": {
                "python": [python_version, list(python_values), gauss],
                "numpy": [kind, np.asarray(keys).tolist(), *rest],
            },
            "best": {
                "value": best.best_value,
                "step": best.best_step,
                "metrics": best.best_metrics,
                "without_gain": best.without_gain,
                "stopped_early": best.stopped_early,
            },
            "loss_scale": [trainer.loss_scale, trainer._good_steps],
            "precision": getattr(trainer.model, "precision", ""),
            "stepper": trainer._stepper.state() if trainer._stepper is not None else None,
            "facts": self.facts,
        }

    # -- going on -------------------------------------------------------------------------------------------------

    @contextmanager
    def attached(self, trainer: Any, checkpoint: Checkpoint | None) -> Generator[str | None]:
        """Hook into ``trainer``; yields what to give as ``resume_from_checkpoint``."""
        self.trainer = trainer
        trainer._save_checkpoint = self.save
        if checkpoint is None:
            yield None
            return
        _restore_best(self.best, checkpoint.state["best"])
        # The Trainer asks for these in turn; each restores its part from the verified checkpoint.
        trainer._load_from_checkpoint = _ignoring(lambda: _restore_model(trainer, checkpoint))
        trainer._load_optimizer_and_scheduler = _ignoring(lambda: _restore_optimizer(trainer, checkpoint))
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


def _ignoring(call: Callable[[], None]) -> Callable[..., None]:
    """``call`` with whatever arguments this version of the Trainer gives."""

    def called(*_arguments: Any, **_named: Any) -> None:
        call()

    return called


def steps_left(checkpoint: Checkpoint, steps_total: int) -> bool:
    """Whether there are steps left to run."""
    return checkpoint.step < steps_total and not checkpoint.state["best"]["stopped_early"]


def _inner(optimizer: Any) -> Any:
    return getattr(optimizer, "optimizer", optimizer)


def _names(trainer: Any) -> dict[Any, str]:
    model: nn.Module = trainer.model
    return {parameter: name for name, parameter in model.named_parameters()}


def _optimizer_state(trainer: Any) -> dict[str, dict[str, Any]]:
    names = _names(trainer)
    return {names[parameter]: values for parameter, values in _inner(trainer.optimizer).state.items()}


def _trainer_state(state: Any) -> dict[str, Any]:
    kept = ("epoch", "global_step", "max_steps", "num_train_epochs", "train_batch_size", "num_input_tokens_seen")
    return {name: getattr(state, name) for name in (*kept, "total_flos", "logging_steps", "eval_steps", "save_steps")}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """What of a dict is JSON; functions and the like are made anew by the code that made them."""
    return {k: v for k, v in values.items() if _is_plain(v)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, bool | int | float | str)


def _tensor(array: Array) -> Tensor:
    dtype = next(dtype for dtype, name in _TYPES.items() if name == array.dtype)
    if not array.nbytes:
        return torch.empty(array.shape, dtype=dtype)
    return torch.frombuffer(bytearray(array.data), dtype=dtype).reshape(array.shape)


def _restore_model(trainer: Any, checkpoint: Checkpoint) -> None:
    prefix = "model."
    values = {n.removeprefix(prefix): _tensor(a) for n, a in checkpoint.arrays.items() if n.startswith(prefix)}
    trainer.model.load_state_dict(values)
    trainer.loss_scale, trainer._good_steps = checkpoint.state["loss_scale"]
    if checkpoint.state["precision"]:
        trainer.model.precision = checkpoint.state["precision"]
    if checkpoint.state["stepper"] is not None:
        trainer.stepper(trainer.model).load_state(checkpoint.state["stepper"])


def _restore_optimizer(trainer: Any, checkpoint: Checkpoint) -> None:
    """By parameter name; refuses where a name is missing on either side."""
    optimizer, names = _inner(trainer.optimizer), _names(trainer)
    trained = {names[p]: p for group in optimizer.param_groups for p in group["params"]}
    saved = checkpoint.state["optimizer"]
    if unknown := sorted(saved.keys() - trained.keys()):
        raise Refusal(
            _(
                "the checkpoint has optimizer state for parameters that are not trained now: {names}",
                names=", ".join(unknown[:5]),
            ),
            where=str(checkpoint.path),
            next_step=_("Train with the same model and settings, or add --fresh."),
            code="FT604",
        )
    fused = {id(p): bool(g.get("fused") or g.get("capturable")) for g in optimizer.param_groups for p in g["params"]}
    for name, values in saved.items():
        parameter = trained[name]
        state: dict[str, Any] = dict(values)
        prefix = f"optimizer.{name}."
        for full, array in checkpoint.arrays.items():
            if full.startswith(prefix) and "." not in (key := full.removeprefix(prefix)):
                on_host = key == "step" and not fused[id(parameter)]
                state[key] = _tensor(array) if on_host else _tensor(array).to(parameter.device)
        optimizer.state[parameter] = state
    for group, kept in zip(optimizer.param_groups, checkpoint.state["groups"], strict=True):
        # The implementation (fused, foreach) is a memory choice: the one of today stays.
        group.update({k: _as(group.get(k), v) for k, v in kept.items() if k not in ("fused", "foreach", "capturable")})
    trainer.lr_scheduler.load_state_dict({**trainer.lr_scheduler.state_dict(), **checkpoint.state["scheduler"]})


def _as(like: Any, value: Any) -> Any:
    return tuple(value) if isinstance(like, tuple) else value


def restore_random(checkpoint: Checkpoint) -> None:
    """Set Python's, NumPy's, torch's and the device's generators to where they were."""
    version, values, gauss = checkpoint.state["random"]["python"]
    random.setstate((version, tuple(values), gauss))
    kind, keys, *rest = checkpoint.state["random"]["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(_tensor(checkpoint.arrays["random.torch"]))
    if "random.cuda" in checkpoint.arrays and torch.cuda.is_available():
        torch.cuda.set_rng_state(_tensor(checkpoint.arrays["random.cuda"]))


def _restore_best(best: BestModel, kept: dict[str, Any]) -> None:
    best.best_value, best.best_step, best.best_metrics = kept["value"], kept["step"], kept["metrics"]
    best.without_gain, best.stopped_early = kept["without_gain"], kept["stopped_early"]
