"""Event: one line of a run's events.jsonl. Bar, report, ``attach`` and ``diagnose`` read the same lines."""

from typing import Any, Literal

from pydantic import Field

from fitune.values.base import Value

EventKind = Literal[
    "started",  # data: versions, device, precision, rows, steps_total
    "step",  # data: loss, learning_rate, grad_norm, tokens, windows, passes
    "evaluation",  # data: split, metrics {name: value}, best (bool)
    "checkpoint",  # data: path, bytes, seconds
    "micro_batch",  # data: from_tokens, to_tokens, reason
    "warning",  # data: code, text
    "resumed",  # data: checkpoint, step
    "stopped",  # data: reason (finished, early_stop, interrupted, deadline, budget, failed ...), exit_code
]


class Event(Value):
    """One thing that happened, at an optimizer step."""

    kind: EventKind
    step: int = Field(ge=0)
    """Optimizer steps done so far."""
    time: float
    """Seconds since the epoch (UTC)."""
    epoch: float | None = None
    """Passes over the training rows done so far."""
    data: dict[str, Any] = Field(default_factory=dict)
