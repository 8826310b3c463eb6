"""A training's course: losses, evaluations, learning rates; read from a run's events here, from logs in ``course``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import ValidationError

from fitune.machine import mask_secrets
from fitune.values import Event


@dataclass(frozen=True)
class Reading:
    """One logged number."""

    value: float
    epoch: float | None
    step: int | None
    line: int
    shown: str
    """``file:line: text`` as it is."""

    @property
    def evidence(self) -> str:
        """``shown`` for a reader: shortened, secrets masked."""
        return mask_secrets(self.shown if len(self.shown) <= 200 else self.shown[:199] + "…")

    @property
    def finite(self) -> bool:
        """Neither nan nor infinite."""
        return math.isfinite(self.value)


@dataclass
class History:
    """All readings of a training, in order."""

    source: str
    own_run: bool = False
    """Read from fitune's events, which say how the run ended."""
    losses: list[Reading] = field(default_factory=list["Reading"])
    evaluation_losses: list[Reading] = field(default_factory=list["Reading"])
    metrics: dict[str, list[Reading]] = field(default_factory=dict[str, "list[Reading]"])
    learning_rates: list[Reading] = field(default_factory=list["Reading"])
    stopped: str = ""
    steps: int = 0

    @property
    def metric(self) -> tuple[str, list[Reading]]:
        """The metric to judge by: F1, else accuracy, else the first that rises when things get better."""
        for wanted in ("f1", "accuracy", "acc", "matthews", "recall"):
            for name, readings in self.metrics.items():
                if wanted in name.lower() and len(readings) > 0:
                    return name, readings
        return "", []

    @property
    def scores(self) -> list[float]:
        """The finite values of ``metric`` as fractions; logs also tell them as percentages."""
        values = [reading.value for reading in self.metric[1] if reading.finite]
        return [value / 100 for value in values] if max(values, default=0) > 1.5 else values

    def smoothed_losses(self, parts: int = 10) -> list[float]:
        """Mean training loss of each of ``parts`` equal stretches; fewer when there are fewer readings.

        Of each three neighbours the middle one: scripts print the loss of single batches, and one of them says nothing.
        """
        values = [reading.value for reading in self.losses if reading.finite]
        values = [median(values[max(0, i - 1) : i + 2]) for i in range(len(values))]
        parts = min(parts, len(values))
        return [
            sum(chunk) / len(chunk)
            for i in range(parts)
            if (chunk := values[i * len(values) // parts : (i + 1) * len(values) // parts])
        ]

    @property
    def peak_learning_rate(self) -> float | None:
        """The highest rate seen."""
        return max((reading.value for reading in self.learning_rates if reading.finite), default=None)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean; of nothing: nan."""
    return sum(values) / len(values) if values else math.nan


def _number(value: Any) -> float | None:
    """Numbers also where JSON has no word for them: null, "nan", "inf"."""
    if value is None:
        return math.nan
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def history_of_events(lines: Sequence[str], source: str) -> History:
    """The course of a fitune run from the lines of its events.jsonl; a torn last line is passed over."""
    history = History(source, own_run=True)
    for number, text in enumerate(lines, 1):
        try:
            event = Event.model_validate_json(text)
        except ValidationError:
            try:
                json.loads(text)
            except json.JSONDecodeError:
                continue  # a line that was being written when the run died
            raise
        history.steps = max(history.steps, event.step)

        def reading(value: float, number: int = number, event: Event = event) -> Reading:
            return Reading(value, event.epoch, event.step, number, f"{source}:{number}: step {event.step}: {value:g}")

        if event.kind == "step" and "loss" in event.data:
            if (loss := _number(event.data["loss"])) is not None:
                history.losses.append(reading(loss))
            if (rate := _number(event.data.get("learning_rate"))) is not None and "learning_rate" in event.data:
                history.learning_rates.append(reading(rate))
        elif event.kind == "evaluation" and event.data.get("split", "dev") != "test":
            metrics = event.data.get("metrics")
            for name, value in (metrics if isinstance(metrics, dict) else {}).items():
                if (number_ := _number(value)) is not None:
                    keep(history, str(name), reading(number_))
        elif event.kind == "stopped":
            history.stopped = str(event.data.get("reason", ""))
    return history


def keep(history: History, name: str, reading: Reading) -> None:
    """Sort a reading of the development set under its loss or a score."""
    if "loss" in name.lower():
        history.evaluation_losses.append(reading)
    elif not re.search(r"runtime|per_second|epoch|step|rows|entities|support|count|learning", name.lower()):
        history.metrics.setdefault(name, []).append(reading)


def read_run(directory: Path) -> History:
    """The course of a run directory."""
    path = directory / "events.jsonl"
    return history_of_events(path.read_text(encoding="utf-8").splitlines(), str(path))
