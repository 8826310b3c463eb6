"""``fitune baseline``: what a linear model reaches, the line that a paid hour must beat."""

from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""
    from fitune.cli.options import READING, SPLITS, with_job_options

    def baseline(
        file: Annotated[str, typer.Argument(metavar="FILE", help=_("Training file in any format, or a job.toml."))],
        as_json: Annotated[bool, typer.Option("--json", help=_("For programs: one JSON value."))] = False,
        given: Any = None,
    ) -> None:
        from fitune.cli.options import job_of
        from fitune.cli.render import show_json, show_metrics
        from fitune.training import baseline

        scores = baseline(job_of(file, given))
        if as_json:
            show_json(scores)
        else:
            show_metrics(scores)

    add_verb(
        app,
        "baseline",
        with_job_options(baseline, (*READING, *SPLITS)),
        _("Score a linear model on the same rows: the line to beat."),
    )
