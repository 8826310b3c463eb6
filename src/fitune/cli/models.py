"""``fitune models``: which encoders are here, which can be fetched, from where."""

from dataclasses import asdict
from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def models(
        as_json: Annotated[bool, typer.Option("--json", help=_("For programs: one JSON value."))] = False,
    ) -> None:
        from fitune.cli.render import show_json, table
        from fitune.hf import list_models

        known = list_models()
        if as_json:
            show_json([asdict(model) | {"folder": model.folder and str(model.folder)} for model in known])
            return
        rows = [
            [
                model.name,
                _("here") if model.is_here else _("to be fetched"),
                f"{model.parameters / 1e6:.0f} M" if model.parameters else "",
                str(model.folder or model.source),
                model.note,
            ]
            for model in known
        ]
        table(rows, [_("name"), "", _("parameters"), _("where"), ""], right=[2])

    add_verb(app, "models", models, _("List the encoders that are here or can be fetched."))
