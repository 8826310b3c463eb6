"""What watches the Trainer: events, evaluations and early stopping, requests to stop. Small, and independent."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from transformers import TrainerCallback

from fitune.values import Event

Listener = Callable[[Event], None]

LONGEST_STRETCH_STEPS = 2000
"""Most optimizer steps between two evaluations: a long epoch is cut into equal stretches."""

LOGGED_POINTS = 400
"""About how often the loss is read and logged in a whole run: reading it waits for the device."""


def evaluation_steps(steps_per_epoch: int, steps_total: int) -> frozenset[int]:
    """Steps after which the dev set is scored: at the end of each epoch, within long epochs, and at the very end."""
    stretches = max(1, math.ceil(steps_per_epoch / LONGEST_STRETCH_STEPS))
    points = {
        round(k * steps_per_epoch / stretches) for k in range(1, stretches * (steps_total // steps_per_epoch + 1) + 1)
    }
    return frozenset({p for p in points if p <= steps_total} | {steps_total})


class Events(TrainerCallback):
    """Turns what happens into Events, one listener after the other."""

    def __init__(self, listeners: Iterable[Listener], evaluate_at: frozenset[int], log_every: int) -> None:
        self.listeners, self.evaluate_at, self.log_every = list(listeners), evaluate_at, log_every
        self.trainer: Any = None
        self._tokens = self._padded = self._windows = self._passes = 0

    def emit(self, kind: Any, state: Any, **data: Any) -> None:
        event = Event(kind=kind, step=state.global_step, time=time.time(), epoch=state.epoch, data=data)
        for listener in self.listeners:
            listener(event)

    def on_step_end(self, args: Any, state: Any, control: Any, **_rest: Any) -> None:
        result = self.trainer.last_result
        self._tokens += result.tokens
        self._padded += result.padded_tokens
        self._passes += result.passes
        if state.global_step in self.evaluate_at:
            control.should_evaluate = control.should_log = True
        if state.global_step % self.log_every == 0 or state.global_step == 1:
            control.should_log = True

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_rest: Any) -> None:
        if not logs or "loss" not in logs:
            return
        figures = {name: _finite(float(logs[name])) for name in ("loss", "learning_rate", "grad_norm") if name in logs}
        self.emit("step", state, **figures, tokens=self._tokens, padded_tokens=self._padded, passes=self._passes)
        self._tokens = self._padded = self._passes = 0


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass
class Stop:
    """Why a run ended before its last step, and the exit code that says so."""

    reason: str
    exit_code: int


class BestModel(TrainerCallback):
    """Keeps the best weights as they come (``keep``) and stops after ``patience`` evaluations without a better one."""

    def __init__(
        self,
        metric: str,
        patience: int,
        events: Events,
        keep: Callable[[dict[str, float]], None],
    ) -> None:
        self.metric, self.patience, self.events, self.keep = metric, patience, events, keep
        self.best_value: float | None = None
        self.best_step: int | None = None
        self.best_metrics: dict[str, float] = {}
        self.without_gain = 0
        self.stopped_early = False

    def is_better(self, value: float) -> bool:
        """Strictly: of equal models the earlier is kept."""
        if self.best_value is None:
            return True
        return value < self.best_value if self.metric == "loss" else value > self.best_value

    def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        metrics: dict[str, float] = given["metrics"]
        own = {name.removeprefix("eval_"): float(value) for name, value in metrics.items() if name.startswith("eval_")}
        seconds = own.pop("runtime", None)
        for name in ("samples_per_second", "steps_per_second", "model_preparation_time"):
            own.pop(name, None)
        value = own[self.metric]
        better = self.is_better(value)
        if better:
            self.best_value, self.best_step, self.best_metrics, self.without_gain = value, state.global_step, own, 0
            self.keep(own)
        else:
            self.without_gain += 1
            if self.patience and self.without_gain >= self.patience:
                control.should_training_stop = self.stopped_early = state.global_step < state.max_steps
        shown = {name: _finite(figure) for name, figure in own.items()}
        self.events.emit("evaluation", state, split="dev", metrics=shown, best=better, seconds=seconds)


@dataclass
class Interrupts(TrainerCallback):
    """Ctrl-C, SIGTERM or SIGHUP asks once: the running step ends, everything is saved. A second one stops at once.

    Used as a context manager around training; other reasons to stop (deadline, budget) set ``stop`` as well.
    Exit codes are the shell's: 128 + the signal's number.
    """

    stop: Stop | None = None
    _before: dict[int, Any] = field(default_factory=dict, repr=False)

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)
                # What nohup or a parent has chosen to ignore stays ignored.
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(self, *_exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if self.stop is not None:
            raise KeyboardInterrupt
        self.stop = Stop("interrupted", 128 + number)

    def on_step_end(self, args: Any, state: Any, control: Any, **_rest: Any) -> None:
        if self.stop is not None:
            control.should_training_stop = True
