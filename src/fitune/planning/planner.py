"""From a Job to Plans: everything here runs in the process it is called in (see ``child`` for the other)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from fitune.messages import _
from fitune.planning.models import MetaLoader, config_of
from fitune.planning.money import with_price
from fitune.planning.outcome import Explanation, LargeTensor, Lengths, Planning, Unfit, usable_bytes
from fitune.planning.past import NEAR_HIGH, NEAR_LOW, Correction
from fitune.planning.searching import Allow, Candidate, Search, fidelity_of
from fitune.planning.workload import Workload, read_workload
from fitune.values import Card, Estimate, Fidelity, Fit, Job, Offer, Plan

CPU_MICRO_BATCH_TOKENS = 512


def search_for(job: Job, workload: Workload | None = None) -> tuple[Search, list[str]]:
    """The search over a job, and notes on how it is known."""
    workload = workload or read_workload(job)
    config, origin = config_of(job.model, workload.job.task)
    notes: list[str] = []
    if origin == "published":
        notes.append(_("{model} is not on this disk: planned from its published configuration", model=job.model))
    if workload.basis == "characters":
        notes.append(_("No tokenizer at hand: one token is counted for every character."))
    layers = int(getattr(config, "num_hidden_layers", 0) or 0)
    segments = int(getattr(config, "type_vocab_size", 0) or 0) > 1
    return Search(workload, MetaLoader(config), layers=layers, segments=segments), notes


def plan_here(
    job: Job,
    cards: Iterable[Card],
    *,
    offers: Iterable[Offer] = (),
    allow: Allow = "rounding",
    corrections: Mapping[str, Correction] | None = None,
    workload: Workload | None = None,
    search: Search | None = None,
) -> Planning:
    """Plans for every card, in this process.

    Raises:
        Refusal: the data cannot be read, or the model is not known.
    """
    notes: list[str] = []
    if search is None:
        search, notes = search_for(job, workload)
    offers = tuple(offers)
    plans: list[Plan] = []
    unfit: list[Unfit] = []
    for card in cards:
        if card.compute_capability is None:
            fit = Fit(micro_batch_tokens=CPU_MICRO_BATCH_TOKENS)
            plans.append(Plan(job=search.workload.job, card=card, fit=fit, fidelity=Fidelity.EXACT, estimate=None))
            continue
        found = search.best(card, allow)
        if found.best is None:
            unfit.append(Unfit(card=card, rejected=tuple(found.rejected)))
            continue
        estimate = _estimate(found.best, search.workload.job, (corrections or {}).get(card.id))
        plans.append(
            Plan(
                job=search.workload.job,
                card=card,
                fit=found.best.fit,
                fidelity=fidelity_of(found.best.fit),
                estimate=with_price(estimate, [offer for offer in offers if offer.card == card.id]),
                rejected=tuple(found.rejected),
            )
        )
    if any(plan.fit.optimizer == "adamw_8bit" for plan in plans):
        notes.append(_("8-bit optimizer state needs the package bitsandbytes."))
    return Planning(
        plans=tuple(sorted(plans, key=_order)),
        unfit=tuple(unfit),
        lengths=_lengths(search.workload),
        notes=tuple(notes),
    )


def estimate_here(
    job: Job, card: Card, fit: Fit, *, corrections: Mapping[str, Correction] | None = None, search: Search | None = None
) -> Plan:
    """What a given Fit is predicted to take on a card, whether it fits or not."""
    if search is None:
        search, _notes = search_for(job)
    if fit.micro_batch is not None and fit.micro_batch_tokens is None:
        # The simulator's budget is in tokens: as many windows of the longest length.
        fit = fit.model_copy(update={"micro_batch_tokens": fit.micro_batch * search.workload.longest})
    estimate = _estimate(search.predict(fit, card), search.workload.job, (corrections or {}).get(card.id))
    return Plan(job=search.workload.job, card=card, fit=fit, fidelity=fidelity_of(fit), estimate=estimate)


def explain_here(
    job: Job,
    card: Card,
    *,
    offers: Iterable[Offer] = (),
    allow: Allow = "rounding",
    corrections: Mapping[str, Correction] | None = None,
    workload: Workload | None = None,
) -> Explanation:
    """The plan of one card with its timeline, its largest tensors and the cheapest change that made it fit."""
    from fitune.planning.picture import timeline_svg

    search, notes = search_for(job, workload)
    planning = plan_here(job, [card], offers=offers, allow=allow, corrections=corrections, search=search)
    planning = planning.model_copy(update={"notes": (*notes, *planning.notes)})
    if card.compute_capability is None:
        return Explanation(planning=planning, timeline_svg="", largest=(), cheapest_change=_("no CUDA"))
    fit = planning.plans[0].fit if planning.plans else planning.unfit[0].rejected[-1].fit
    wanted = search.demand(fit.micro_batch_tokens)
    replayed = search.template(fit, card.compute_capability).replay(
        wanted.sequence, card.compute_capability, detail=True
    )
    largest = tuple(
        LargeTensor(
            size_bytes=size,
            module=storage.module or (_("optimizer state") if storage.phase == "optimizer" else "-"),
            op=storage.op,
            phase=storage.phase,
            dtype=storage.dtype,
        )
        for storage, size in replayed.peak_alive[:10]
    )
    return Explanation(
        planning=planning,
        timeline_svg=timeline_svg(replayed, card, usable_bytes(card), title=f"{job.model}, {card.name}"),
        largest=largest,
        cheapest_change=_change(planning, search, card),
    )


def _change(planning: Planning, search: Search, card: Card) -> str:
    """What was changed against a whole step at once, and what that costs."""
    if not planning.plans:
        return _("nothing that fitune may change makes it fit")
    plan = planning.plans[0]
    whole = search.predict(Fit(precision=plan.fit.precision), card)
    if whole.peak_bytes <= usable_bytes(card):
        return _("none is needed: the whole step fits")
    names = [n for n in Fit.model_fields if getattr(plan.fit, n) != getattr(whole.fit, n)]
    changed = ", ".join(f"{name} = {getattr(plan.fit, name)}" for name in names)
    cost = search.predict(plan.fit, card).epoch.middle / whole.epoch.middle - 1
    return _(
        "{changed} ({fidelity}; {cost} % of time against a card where the whole step fits)",
        changed=changed,
        # Against the whole step in the same precision.
        fidelity=fidelity_of(plan.fit.model_copy(update={"precision": "fp32"})).name,
        cost=f"{100 * cost:+.0f}",
    )


def _estimate(best: Candidate, job: Job, correction: Correction | None) -> Estimate:
    epochs = job.epochs or 1.0
    middle, low, high = best.epoch.middle, best.epoch.low, best.epoch.high
    if correction is not None:
        middle *= correction.factor
        low, high = middle * NEAR_LOW, middle * NEAR_HIGH
    return Estimate(
        predicted_peak_bytes=best.peak_bytes,
        predicted_seconds=middle * epochs,
        predicted_seconds_low=low * epochs,
        predicted_seconds_high=high * epochs,
        predicted_seconds_per_epoch=middle,
    )


def _order(plan: Plan) -> tuple[bool, float, float]:
    """Cheapest first; then, without a price, the fastest; then what is not known."""
    estimate = plan.estimate
    if estimate is None:
        return True, 0.0, float("inf")
    price = estimate.predicted_price
    return price is None, price or 0.0, estimate.predicted_seconds or 0.0


def _lengths(workload: Workload) -> Lengths:
    lengths = workload.lengths_W
    return Lengths(
        rows=workload.rows,
        windows=len(lengths),
        longest=int(lengths.max()),
        mean=round(float(lengths.mean()), 1),
        most_in_95_percent=int(np.quantile(lengths, 0.95)),
        basis=workload.basis,
    )
