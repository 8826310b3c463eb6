"""The nouns that flow through fitune: frozen, checked when made, JSON both ways.

Rows (Example, Span, Prediction, Source) are slotted dataclasses, since a file may hold a million of them;
everything that is written to disk once per run (Job, Fit, Card, Plan, Event, Finding ...) is a pydantic model.
"""

from fitune.values.cards import Card, Offer
from fitune.values.event import Event
from fitune.values.finding import Finding, Fix, Refusal
from fitune.values.fit import FIDELITY, Fidelity, Fit
from fitune.values.job import Job
from fitune.values.plan import Estimate, Plan, RejectedFit
from fitune.values.rows import Example, Prediction, Source, Span

__all__ = [
    "FIDELITY",
    "Card",
    "Estimate",
    "Event",
    "Example",
    "Fidelity",
    "Finding",
    "Fit",
    "Fix",
    "Job",
    "Offer",
    "Plan",
    "Prediction",
    "Refusal",
    "RejectedFit",
    "Source",
    "Span",
]
