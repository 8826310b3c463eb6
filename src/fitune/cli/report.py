"""``fitune report``: one page about a run."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def report(
        run: Annotated[str, typer.Argument(metavar="RUN", help=_("Run directory."))],
        show: Annotated[bool, typer.Option("--open", help=_("Open it in the browser."))] = False,
    ) -> None:
        from fitune.cli.render import say, show_scores
        from fitune.runs import Run, write_report

        opened = Run.open(run)
        path = write_report(opened)
        if opened.evaluation is not None:
            show_scores(opened.evaluation)
        say(_("Report: {path}", path=path))
        if show:
            import webbrowser

            webbrowser.open(path.resolve().as_uri())

    add_verb(app, "report", report, _("Write one page about a run: scores, curves, worst errors."))
