"""``fitune baseline``: what a linear model reaches, the line that a paid hour must beat."""

from pathlib import Path
from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""
    from fitune.cli.options import READING, SPLITS, with_job_options

    def baseline(
        file: Annotated[
            str,
            typer.Argument(
                metavar="FILE",
                help=_("Training file in any format, a job.toml, or a run: its report then shows the line too."),
            ),
        ],
        as_json: Annotated[bool, typer.Option("--json", help=_("For programs: one JSON value."))] = False,
        given: Any = None,
    ) -> None:
        score_baseline(file, as_json, given)

    add_verb(
        app,
        "baseline",
        with_job_options(baseline, (*READING, *SPLITS)),
        _("Score a linear model on the same rows: the line to beat."),
    )


def score_baseline(file: str, as_json: bool, given: dict[str, Any]) -> None:
    """Fit, score, show; beside a run's own scores where ``file`` is a run."""
    from fitune.cli.options import job_of
    from fitune.cli.render import say, screen, show_json, show_metrics, show_scores
    from fitune.runs import Run, write_report
    from fitune.training import baseline

    is_run = (Path(file) / "events.jsonl").is_file()
    job = job_of(str(Path(file) / "job.toml") if is_run else file, given)
    with screen().status(_("Fitting a linear model ...")) as status:

        def watch(iteration: int, most: int) -> None:
            status.update(_("Fitting a linear model: {iteration} of at most {most}", iteration=iteration, most=most))

        scores = baseline(job, watch)
    if as_json:
        show_json(scores)
    else:
        show_metrics(scores)
    run = Run.open(file) if is_run else None
    if run is None or run.evaluation is None:
        return
    run.write_evaluation(run.evaluation.model_copy(update={"baseline": scores}))
    report = write_report(run)
    if not as_json:
        say(_("The trained model, on the same rows:"))
        show_scores(run.evaluation)
        say(_("Report: {path}", path=report))
