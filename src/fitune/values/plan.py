"""Plan: a Job on a Card with a Fit, and what that is predicted to take."""

from pydantic import Field

from fitune.values.base import Value
from fitune.values.cards import Card
from fitune.values.fit import Fidelity, Fit
from fitune.values.job import Job


class Estimate(Value):
    """Predicted figures. Measured ones live elsewhere, under names that start with ``measured_``."""

    predicted_peak_bytes: int = Field(ge=0)
    """Most bytes of the card in use at once: allocator segments plus context."""
    predicted_seconds: float | None = None
    """Whole job; None when nothing is known of the speed."""
    predicted_seconds_low: float | None = None
    predicted_seconds_high: float | None = None
    predicted_seconds_per_epoch: float | None = None
    predicted_price: float | None = None
    """For the cheapest offer, set-up time included."""
    currency: str | None = None


class RejectedFit(Value):
    """A fit that was looked at and not taken."""

    fit: Fit
    fidelity: Fidelity
    reason: str
    """Such as "needs 13.1 GiB of 11.6 usable"."""


class Plan(Value):
    """What will be run, why it fits, and what was rejected."""

    job: Job
    card: Card | None
    """None: this machine's CPU."""
    fit: Fit
    fidelity: Fidelity
    estimate: Estimate | None
    rejected: tuple[RejectedFit, ...] = ()
