"""``fitune plan``: will it fit, at which setting, how long, how much; on one card or on all."""

from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _
from fitune.values import Card, Fit, Job


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""
    from fitune.cli.options import with_job_options

    def plan(
        file: Annotated[str, typer.Argument(metavar="FILE", help=_("Training file in any format, or a job.toml."))],
        card: Annotated[
            str | None, typer.Option(metavar="ID", help=_("One card (see fitune cards), or mine; all by default."))
        ] = None,
        explain: Annotated[
            bool, typer.Option("--explain", help=_("Draw the memory of a step, name the largest tensors."))
        ] = False,
        allow: Annotated[
            str, typer.Option(metavar="exact|rounding|different", help=_("What may change for memory or speed."))
        ] = "rounding",
        prices: Annotated[str | None, typer.Option(metavar="FILE", help=_("Your own prices, as TOML."))] = None,
        out: Annotated[str | None, typer.Option(metavar="FILE", help=_("Where --explain draws; memory.svg."))] = None,
        as_json: Annotated[bool, typer.Option("--json", help=_("For programs: one JSON value."))] = False,
        given: Any = None,
    ) -> None:
        from fitune.cli.options import job_of

        plan_job(job_of(file, given), card, allow, prices, out or "memory.svg" if explain or out else None, as_json)

    fields = [field for field in Job.model_fields if field != "train"]
    help_text = _("Say before training: does it fit, at which setting, how long, how much money.")
    add_verb(app, "plan", with_job_options(plan, fields), help_text)


def plan_job(job: Job, card: str | None, allow: str, prices: str | None, picture: str | None, as_json: bool) -> None:
    """Print the plan of one card, or the table over all of them."""
    from fitune.catalog import offers
    from fitune.cli.render import say, show_json
    from fitune.planning import explain, past_corrections, plan_all
    from fitune.values import Refusal

    if allow not in ("exact", "rounding", "different"):
        raise Refusal(_("no such word: {found}", found=allow), where="--allow", next_step="exact, rounding, different")
    if picture and card is None:
        raise Refusal(_("--explain needs a card"), where="fitune plan", next_step=_("Add --card ID; see: fitune cards"))
    wanted = None if card is None else [wanted_card(card)]
    settings: dict[str, Any] = {"allow": allow, "offers": offers(prices), "corrections": past_corrections()}
    explanation = explain(job, wanted[0], **settings) if wanted and picture else None
    planning = explanation.planning if explanation else plan_all(job, cards=wanted, **settings)
    if as_json:
        shown = explanation or planning
        show_json(shown.model_dump(mode="json", exclude={"timeline_svg"}))
        return
    if wanted and planning.unfit:
        from fitune.planning import nothing_fits

        raise nothing_fits(wanted[0], planning)
    show_lengths(planning)
    if wanted:
        show_plan(planning.plans[0], settings["offers"])
    else:
        show_table(planning)
    for note in planning.notes:
        say(note, "dim")
    if explanation is not None and picture:
        show_explanation(explanation, picture)


def planned_fit(path: str) -> Fit:
    """The Fit in what ``fitune plan --card ID --json`` wrote, or in a run's plan.json.

    Raises:
        Refusal: no plan stands there, or plans for several cards.
    """
    import json
    from pathlib import Path

    from fitune.values import Refusal

    next_step = _("Write one: fitune plan FILE --card ID --json > plan.json")
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        plans = plain.get("plans", [plain])
        fits = [Fit.model_validate(plan["fit"]) for plan in plans]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(_("no plan can be read: {error}", error=error), where=path, next_step=next_step) from None
    if len(fits) != 1:
        raise Refusal(_("it holds {count} plans", count=len(fits)), where=path, next_step=next_step)
    return fits[0]


def own_cards() -> list[Card]:
    """The cards of this machine: catalogue figures with the memory that this very device has."""
    from fitune.catalog import match_device
    from fitune.machine import probe

    found: list[Card] = []
    for device in probe().devices:
        if (card := match_device(device.name, device.memory_bytes)) is not None:
            least = min(card.memory_bytes, device.memory_bytes) or card.memory_bytes
            found.append(card.model_copy(update={"memory_bytes": least}))
    return found


def wanted_card(name: str) -> Card:
    """A card of the catalogue, or ``mine``: this machine's first."""
    from fitune.catalog import card_of
    from fitune.values import Refusal

    if name != "mine":
        return card_of(name)
    if mine := own_cards():
        return mine[0]
    raise Refusal(
        _("no card of the catalogue is seen here"),
        where="--card mine",
        next_step=_("Look with: fitune doctor"),
        code="FT354",
    )


def setting(fit: Fit) -> str:
    """The memory choices in few words."""
    words = [fit.precision]
    words.append(
        _("whole step") if fit.micro_batch_tokens is None else _("{n} tokens a pass", n=fit.micro_batch_tokens)
    )
    if fit.checkpoint_every:
        words.append(_("checkpointing"))
    if fit.optimizer != "adamw_fused":
        words.append(fit.optimizer)
    if fit.frozen_layers:
        words.append(_("{n} layers frozen", n=fit.frozen_layers))
    return ", ".join(words)


def show_lengths(planning: Any) -> None:
    """What the data asks for."""
    from fitune.cli.render import say

    lengths = planning.lengths
    say(
        _(
            "{rows} rows, {windows} windows: {mean} tokens on average, 95 % have at most {most}, the longest {longest}",
            rows=lengths.rows,
            windows=lengths.windows,
            mean=lengths.mean,
            most=lengths.most_in_95_percent,
            longest=lengths.longest,
        ),
        "dim",
    )


def show_table(planning: Any) -> None:
    """All cards, cheapest first; those on which nothing fits at the end."""
    from fitune.cli.render import say, table
    from fitune.runs import duration

    rows: list[list[str]] = []
    for plan in planning.plans:
        estimate = plan.estimate
        if estimate is None:
            rows.append([plan.card.id, "-", setting(plan.fit), plan.fidelity.name, "-", "-", "-", ""])
            continue
        peak, usable = estimate.predicted_peak_bytes / 2**30, plan.card.memory_bytes / 2**30
        rows.append(
            [
                plan.card.id,
                _("yes"),
                setting(plan.fit),
                plan.fidelity.name,
                f"{peak:.1f} / {usable:.1f}",
                duration(estimate.predicted_seconds_per_epoch),
                span_of(estimate),
                "" if estimate.predicted_price is None else f"{estimate.predicted_price:.2f} {estimate.currency}",
            ]
        )
    for unfit in planning.unfit:
        reason = unfit.rejected[-1].reason if unfit.rejected else ""
        rows.append([unfit.card.id, _("no"), reason, "", "", "", "", ""])
    head = [_("card"), _("fits"), _("fastest setting"), _("fidelity"), _("peak / card, GiB"), _("an epoch")]
    table(rows, [*head, _("whole job"), _("price")], right=(4, 5))
    say(
        _("Prices count setting up; yours with --prices FILE. Times are ranges: published speeds scatter as widely."),
        "dim",
    )


def span_of(estimate: Any) -> str:
    """The whole job's time, low to high."""
    from fitune.runs import duration

    return f"{duration(estimate.predicted_seconds_low)} - {duration(estimate.predicted_seconds_high)}"


def show_plan(plan: Any, offers: Any) -> None:
    """One card in full."""
    from fitune.cli.render import say
    from fitune.planning import offers_compiling, price_of, usable_bytes
    from fitune.runs import duration, gib

    say(f"{plan.card.name}: {setting(plan.fit)} ({plan.fidelity.name})", "bold")
    estimate = plan.estimate
    if estimate is None:
        say(_("No CUDA: fitune trains here, but cannot predict it."))
        return
    say(
        _(
            "Memory: {peak} of {card}; planned for at most {usable} (3 % and 100 MiB are kept free)",
            peak=gib(estimate.predicted_peak_bytes),
            card=gib(plan.card.memory_bytes),
            usable=gib(usable_bytes(plan.card)),
        )
    )
    epoch = duration(estimate.predicted_seconds_per_epoch)
    say(_("Time: {epoch} an epoch, {span} in all", epoch=epoch, span=span_of(estimate)))
    if offers_compiling(plan):
        say(_("--compile: fitune train tries it on one step and keeps it only where it is faster"))
    for offer in offers:
        if offer.card == plan.card.id:
            price = f"{price_of(estimate.predicted_seconds, offer):.2f} {offer.currency}"
            say(_("Price: {price} at {place}", price=price, place=offer.place))
    for rejected in plan.rejected:
        say(f"    {setting(rejected.fit)} ({rejected.fidelity.name}): {rejected.reason}", "dim")


def show_explanation(explanation: Any, picture: str) -> None:
    """The ten largest tensors, the change that makes it fit, and where the picture lies."""
    from pathlib import Path

    from fitune.cli.render import say, table

    rows = [
        [f"{tensor.size_bytes / 2**20:.1f}", tensor.module, tensor.op, tensor.phase] for tensor in explanation.largest
    ]
    table(rows, ["MiB", _("module"), _("made by"), _("phase")], right=(0,))
    say(_("Cheapest change: {change}", change=explanation.cheapest_change))
    if explanation.timeline_svg:
        Path(picture).write_text(explanation.timeline_svg, encoding="utf-8")
        say(_("Picture: {path}", path=picture))
