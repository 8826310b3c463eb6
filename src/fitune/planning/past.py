"""What past runs on this machine say of the predictions: measured time over predicted time, card by card."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from fitune.catalog import match_device
from fitune.runs import Run

NEAR_LOW, NEAR_HIGH = 0.85, 1.25
"""The range around a prediction that runs on this card have corrected."""


@dataclass(frozen=True)
class Correction:
    """Measured seconds over those that the model of time says."""

    factor: float
    runs: int


def past_corrections(root: str | Path = "runs") -> dict[str, Correction]:
    """Card id -> correction, from every run below ``root`` that was planned, ended and ran on the card of its plan.

    A later plan was corrected already by the runs before it: they are taken in their order, and that is undone.
    """
    factors: dict[str, list[float]] = {}
    for directory in sorted(Path(root).glob("*/plan.json"), key=lambda path: path.stat().st_mtime):
        if (found := _ratio(Run(directory.parent))) is not None:
            card, ratio = found
            before = factors.setdefault(card, [])
            before.append(ratio * (statistics.median(before) if before else 1.0))
    return {card: Correction(statistics.median(values), len(values)) for card, values in factors.items()}


def _ratio(run: Run) -> tuple[str, float] | None:
    """Card and measured / predicted seconds of a whole job; None: not comparable."""
    try:
        plan, evaluation, events = run.plan, run.evaluation, run.events()
    except (ValueError, OSError):
        return None  # written by another version, or torn: not an answer to this question
    if plan is None or plan.card is None or plan.estimate is None or not plan.estimate.predicted_seconds:
        return None
    if evaluation is None or not evaluation.measured_seconds:
        return None
    device = match_device(evaluation.device, plan.card.memory_bytes)
    if device is None or device.id != plan.card.id:
        return None
    total = next((e.data.get("steps_total") for e in events if e.kind == "started"), None)
    done = max((e.step for e in events), default=0)
    if not total or not done:
        return None
    # Early stopping ends sooner: what was measured stands for the steps that were taken.
    return plan.card.id, evaluation.measured_seconds / (done / total) / plan.estimate.predicted_seconds
