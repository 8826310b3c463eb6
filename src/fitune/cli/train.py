"""``fitune train``: a file in, a run directory out."""

from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _
from fitune.values import Fit, Job


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""
    from fitune.cli.options import with_job_options

    def train(
        file: Annotated[str, typer.Argument(metavar="FILE", help=_("Training file in any format, or a job.toml."))],
        out: Annotated[
            str | None, typer.Option(metavar="DIR", help=_("Run directory; runs/FILE-n by default."))
        ] = None,
        micro_batch: Annotated[
            int | None,
            typer.Option(metavar="N", help=_("Most windows in one pass: memory alone, nothing learned changes.")),
        ] = None,
        precision: Annotated[
            str | None, typer.Option(metavar="fp32|fp16|bf16", help=_("Chosen from the hardware by default."))
        ] = None,
        report_to: Annotated[
            str, typer.Option(metavar="NAME", help=_("Tracker: tensorboard, swanlab, wandb or mlflow."))
        ] = "none",
        fresh: Annotated[bool, typer.Option("--fresh", help=_("Begin anew, even where a run could go on."))] = False,
        given: Any = None,
    ) -> None:
        from fitune.cli.options import job_of

        job, fit = job_of(file, given), fit_of(micro_batch, precision)
        run_job(job, file, out, fit, report_to=report_to, fresh=fresh)

    fields = [field for field in Job.model_fields if field != "train"]
    add_verb(app, "train", with_job_options(train, fields), _("Train on a file; the result is a run directory."))


def fit_of(micro_batch: int | None, precision: str | None) -> Fit | None:
    """The memory choices that were typed; None: none were."""
    from pydantic import ValidationError

    from fitune.values import Refusal

    settings = {"micro_batch": micro_batch, "precision": precision}
    typed = {name: value for name, value in settings.items() if value is not None}
    if not typed:
        return None
    try:
        return Fit.model_validate(typed)
    except ValidationError as error:
        first = error.errors()[0]
        name = "--" + str(first["loc"][0]).replace("_", "-")
        raise Refusal(str(first["msg"]), where=f"{name} {first['input']}") from None


def run_job(job: Job, file: str, out: str | None, fit: Fit | None, **settings: Any) -> None:
    """Train with a live view; print scores and where everything lies; exit as the run's last event says."""
    from pathlib import Path

    from fitune.cli.progress import shown_live
    from fitune.cli.render import say, show_scores
    from fitune.runs import Run, new_run_directory, write_report

    directory = Path(out) if out else new_run_directory(Path(file).parent if Path(file).name == "job.toml" else file)
    say(_("Run directory: {path}", path=directory))
    run = Run(directory)
    try:
        from fitune.training import train

        with shown_live(run, job.metric):
            train(job, fit=fit, run_directory=directory, **settings)
    except BaseException:
        # A directory made here for a run that never began is noise.
        if not out and directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
        raise
    if run.evaluation is not None:
        show_scores(run.evaluation)
    if run.model_path.is_dir():
        say(_("Model:  {path}", path=run.model_path))
    say(_("Report: {path}", path=write_report(run)))
    stopped = next((e for e in reversed(run.events()) if e.kind == "stopped"), None)
    if stopped is not None and (code := stopped.data.get("exit_code")):
        raise SystemExit(int(code))
