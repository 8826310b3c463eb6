"""Which checkpoints are kept, and whether the disk has room for them. Figures in bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fitune.messages import _
from fitune.values import Finding, Fix


@dataclass(frozen=True)
class Policy:
    """What is kept after each save; the newest always is."""

    latest: int = 2
    """So many of the newest: the one before the newest is there in case the newest is damaged later."""
    best: int = 0
    """So many with the best score (the best model's weights are kept elsewhere)."""
    every_steps: int | None = None
    """Those at multiples of so many steps."""
    most_bytes: int | None = None
    """All together; the oldest go first, the newest stays."""

    def __post_init__(self) -> None:
        if self.latest < 1 or self.best < 0 or (self.every_steps is not None and self.every_steps < 1):
            raise ValueError(f"a policy must keep at least the newest checkpoint: {self}")


@dataclass(frozen=True)
class Entry:
    """What retention needs to know of a checkpoint."""

    name: str
    serial: int
    """Rises with every save of a run."""
    step: int
    nbytes: int
    score: float | None = None
    """Higher is better."""


def superfluous(entries: Sequence[Entry], policy: Policy) -> list[Entry]:
    """The entries that ``policy`` does not keep, oldest first."""
    order = sorted(entries, key=lambda entry: entry.serial)
    keep = {entry.serial for entry in order[-policy.latest :]}
    scored = sorted((e for e in order if e.score is not None), key=lambda e: (e.score, -e.serial), reverse=True)
    keep |= {entry.serial for entry in scored[: policy.best]}
    if policy.every_steps:
        keep |= {entry.serial for entry in order if entry.step % policy.every_steps == 0}
    kept = [entry for entry in order if entry.serial in keep]
    while policy.most_bytes is not None and len(kept) > 1 and sum(e.nbytes for e in kept) > policy.most_bytes:
        kept.pop(0)
    stay = {entry.serial for entry in kept}
    return [entry for entry in order if entry.serial not in stay]


@dataclass(frozen=True)
class Forecast:
    """Predicted disk use of a run."""

    policy: Policy
    """The policy asked for, or a smaller one that fits."""
    predicted_bytes: int
    """At most, for what was asked: one state more than is kept, since the old goes after the new is complete."""
    free_bytes: int
    finding: Finding | None
    """FT606 where the disk has less room than was asked for."""
    states_fit: bool = True
    """False: a state could not be replaced by the next one; only what fits beside all else should be saved."""


def forecast(
    policy: Policy,
    checkpoint_bytes: int,
    free_bytes: int,
    steps_total: int | None = None,
    *,
    model_bytes: int = 0,
) -> Forecast:
    """Compare the room that a run needs with what is free, before the first step.

    Args:
        checkpoint_bytes: of one full state.
        free_bytes: what the run may use, with what its earlier states and model hold already.
        model_bytes: of the best model, which is written beside the one that it replaces.
    """
    kept = policy.latest + policy.best
    if policy.every_steps and steps_total:
        kept += steps_total // policy.every_steps
    states = (kept + 1) * checkpoint_bytes
    if policy.most_bytes is not None:
        states = min(states, max(policy.most_bytes, checkpoint_bytes) + checkpoint_bytes)
    needed = states + 2 * model_bytes
    if needed <= free_bytes:
        return Forecast(policy, needed, free_bytes, None)
    fits = (free_bytes - 2 * model_bytes) // checkpoint_bytes - 1
    smaller = replace(policy, latest=max(1, min(policy.latest, fits)), best=0, every_steps=None)
    figures = {"needed": _gigabytes(needed), "free": _gigabytes(free_bytes)}
    if fits < 1:
        title = _(
            "{needed} GB needed for the model and full states, {free} GB free: not even one state can be replaced "
            "safely; a run that is broken off may begin anew",
            **figures,
        )
    else:
        title = _(
            "{needed} GB needed for the model and full states, {free} GB free: keeping {count} full state(s)",
            **figures,
            count=smaller.latest,
        )
    fix = Fix(safety="display", text=_("Make room on the disk, or give a directory on another one with --out"))
    finding = Finding(code="FT606", severity="warning", title=title, fixes=(fix,))
    return Forecast(smaller, needed, free_bytes, finding, states_fit=fits >= 1)


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f}" if count >= 1e8 else f"{count / 1e9:.3f}"
