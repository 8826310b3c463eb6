"""``fitune explain``: the page of one finding."""

import re
from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def explain(
        code: Annotated[str | None, typer.Argument(metavar="CODE", help=_("Such as FT301, or 301."))] = None,
        every: Annotated[bool, typer.Option("--list", help=_("Every code with its title."))] = False,
    ) -> None:
        show_page(code, every)

    add_verb(app, "explain", explain, _("Print the page of one finding."))


def show_page(code: str | None, every: bool) -> None:
    """The page, or the list of all."""
    from fitune.cli.render import say
    from fitune.doctor import all_rules, explain

    if every or code is None:
        for rule in all_rules():
            say(f"{rule.code}  {rule.page().title}")
        return
    number = re.fullmatch(r"(?:FT)?[-_ ]?(\d{3})", code.strip().strip("[]"), re.IGNORECASE)
    say(explain(f"FT{number[1]}" if number else code).rstrip())
