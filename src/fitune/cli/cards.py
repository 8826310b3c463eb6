"""``fitune cards``: the catalogue of GPU types; --mine: this machine's."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def cards(
        mine: Annotated[bool, typer.Option("--mine", help=_("Only the cards of this machine."))] = False,
        as_json: Annotated[bool, typer.Option("--json", help=_("For programs: one JSON value."))] = False,
    ) -> None:
        show_cards(mine, as_json)

    add_verb(app, "cards", cards, _("List the cards that fitune plans for, with their sources."))


def show_cards(mine: bool, as_json: bool) -> None:
    """A table, or JSON with the source of every figure."""
    from fitune.catalog import cards, offers
    from fitune.cli.render import say, show_json, table

    listed = list(cards())
    if mine:
        from fitune.cli.plan import own_cards

        listed = own_cards()
    if as_json:
        show_json([card.model_dump(mode="json") for card in listed])
        return
    if not listed:
        say(_("No CUDA card is seen here. What is wrong: fitune doctor"))
        return
    prices = {offer.card: f"{offer.price_per_hour:g} {offer.currency}" for offer in offers()}
    rows = [
        [
            card.id,
            card.name,
            f"{card.memory_bytes / 2**30:.2f}" if card.memory_bytes else "-",
            "{}.{}".format(*card.compute_capability) if card.compute_capability else "-",
            *(f"{rate:.1f}" if rate else "-" for rate in (card.fp32_tflops, card.fp16_tflops, card.bf16_tflops)),
            f"{card.bandwidth_bytes_per_second / 1e9:.0f}" if card.bandwidth_bytes_per_second else "-",
            prices.get(card.id, ""),
        ]
        for card in listed
    ]
    head = ["id", _("name"), _("usable GiB"), "sm", "fp32 TFLOPS", "fp16", "bf16", "GB/s", _("price an hour")]
    table(rows, head, right=range(2, 8))
    say(_("Where each figure is from: fitune cards --json"), "dim")
