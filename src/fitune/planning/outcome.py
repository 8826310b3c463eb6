"""What planning says: plans of one job for many cards, and one card's plan explained. JSON both ways, no torch."""

from __future__ import annotations

from typing import Literal

from fitune.values import Card, Plan, RejectedFit
from fitune.values.base import Value

Allow = Literal["exact", "rounding", "different"]
"""How far a plan may go: the same sums in another order; fewer bits; something else learned."""
MARGIN_SHARE, MARGIN_BYTES = 0.03, 100 << 20
"""Kept free of every card: more than the spread of a context, and room for what no simulation knows."""


def usable_bytes(card: Card) -> int:
    """What a plan may take of a card, context included: all but 3 % and 100 MiB."""
    return max(0, int(card.memory_bytes * (1 - MARGIN_SHARE)) - MARGIN_BYTES)


COMPILE_OFFERED_SECONDS = 1800.0
"""Jobs that are predicted to take longer are told of ``--compile``. Compiling bert-base took 313 s on one CPU core
(2026-11; no card was measured), so that a shorter job would have to win back a sixth of its time before it gains any.
"""


def offers_compiling(plan: Plan) -> bool:
    """Whether trying torch.compile may pay on the plan's card: that is for a trial to say, no factor is assumed."""
    on_card = plan.card is not None and plan.card.compute_capability is not None
    seconds = plan.estimate.predicted_seconds if plan.estimate is not None else None
    return on_card and (seconds or 0.0) > COMPILE_OFFERED_SECONDS


class Unfit(Value):
    """A card on which nothing fits."""

    card: Card
    rejected: tuple[RejectedFit, ...]


class Lengths(Value):
    """The windows of the training rows."""

    rows: int
    windows: int
    longest: int
    mean: float
    most_in_95_percent: int
    basis: str
    """``tokenizer``, ``characters`` (one token each: no tokenizer was at hand) or ``fixed``."""


class Planning(Value):
    """Plans of one job, cheapest first, then fastest first."""

    plans: tuple[Plan, ...]
    unfit: tuple[Unfit, ...]
    lengths: Lengths
    notes: tuple[str, ...] = ()
    """What the reader should know of how this was found, in their language."""


class LargeTensor(Value):
    """A tensor alive at the peak."""

    size_bytes: int
    module: str
    op: str
    dtype: str
    phase: str


class Explanation(Value):
    """One card's plan in detail."""

    planning: Planning
    timeline_svg: str
    largest: tuple[LargeTensor, ...]
    cheapest_change: str
