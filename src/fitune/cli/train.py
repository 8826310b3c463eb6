"""``fitune train``: a file in, a run directory out."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _
from fitune.values import Fit, Job

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fitune.runs import Run
    from fitune.training import Choice, Splits


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
        compile_model: Annotated[
            bool,
            typer.Option("--compile", help=_("Try torch.compile on one step; it stays only where it is faster.")),
        ] = False,
        plan: Annotated[
            str | None,
            typer.Option(metavar="FILE", help=_("Train as planned: what fitune plan --card ID --json wrote.")),
        ] = None,
        report_to: Annotated[
            str, typer.Option(metavar="NAME", help=_("Tracker: tensorboard, swanlab, wandb or mlflow."))
        ] = "none",
        fresh: Annotated[bool, typer.Option("--fresh", help=_("Begin anew, even where a run could go on."))] = False,
        deadline: Annotated[
            str | None, typer.Option(metavar="TIME", help=_("Save and stop then: 08:30, 2026-01-31T08:30, +90m, +8h."))
        ] = None,
        max_hours: Annotated[
            float | None, typer.Option(metavar="H", min=0, help=_("Save and stop after so many hours."))
        ] = None,
        detach: Annotated[
            bool, typer.Option("--detach", help=_("Go on after this terminal is closed; see fitune attach."))
        ] = False,
        given: Any = None,
    ) -> None:
        from fitune.cli.options import job_of

        job, fit = job_of(file, given), fit_of(micro_batch, precision, plan, compile_model=compile_model)
        saving = saving_of(deadline, max_hours)
        run_job(job, file, out, fit, detach=detach, fresh=fresh, report_to=report_to, saving=saving)

    fields = [field for field in Job.model_fields if field != "train"]
    add_verb(app, "train", with_job_options(train, fields), _("Train on a file; the result is a run directory."))


def fit_of(
    micro_batch: int | None, precision: str | None, plan: str | None = None, *, compile_model: bool = False
) -> Fit | None:
    """The memory choices of a plan and those that were typed, which win; None: there are none."""
    from pydantic import ValidationError

    from fitune.values import Refusal

    settings = {"micro_batch": micro_batch, "precision": precision, "compile": compile_model or None}
    typed = {name: value for name, value in settings.items() if value is not None}
    planned: dict[str, Any] = {}
    if plan is not None:
        from fitune.cli.plan import planned_fit

        planned = planned_fit(plan).model_dump()
    if not typed and plan is None:
        return None
    try:
        return Fit.model_validate({**planned, **typed})
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        limits = first.get("ctx", {})
        if first["type"] == "literal_error":
            step = _("It takes {values}.", values=str(limits["expected"]).replace(" or ", ", "))
        elif first["type"] == "greater_than_equal":
            step = _("It takes whole numbers from {limit}.", limit=limits["ge"])
        else:
            step = _("See fitune train --help.")
        raise Refusal(_("this value is not possible"), where=f"{option} {first['input']}", next_step=step) from None


def saving_of(deadline: str | None, max_hours: float | None) -> dict[str, Any]:
    """When the run must end, as fields of ``training.Saving``."""
    from fitune.cli.running import when_of

    ends: dict[str, Any] = {}
    if deadline is not None:
        ends["deadline"] = when_of(deadline)
    if max_hours is not None:
        ends["most_seconds"] = 3600 * max_hours
    return ends


def run_job(
    job: Job,
    file: str,
    out: str | None,
    fit: Fit | None,
    *,
    detach: bool = False,
    fresh: bool = False,
    saving: dict[str, Any] | None = None,
    **settings: Any,
) -> None:
    """Train with a live view; print scores and where everything lies; exit as the run's last event says."""
    from pathlib import Path

    from fitune.cli.progress import shown_live
    from fitune.cli.running import refuse_if_at_work
    from fitune.runs import Run
    from fitune.training import choose_run

    name = Path(file).resolve().parent if Path(file).name == "job.toml" else file
    if out is not None:
        # Before anything is compared or set aside: whatever was asked for, the run there is at work.
        refuse_if_at_work(Path(out))
    choice = choose_run(job, out, fresh=fresh, name=name)
    directory, run = choice.directory, Run(choice.directory)
    refuse_if_at_work(directory)
    goes_on = choice.kind == "goes_on"
    splits = look_first(job, None if out else run)
    if detach:
        go_to_background(choice)
        return
    try:
        from fitune.cli.planned import plan_beside
        from fitune.hf import keep_memory, light_imports

        keep_memory()
        with light_imports():
            from fitune.training import Saving, train

        with shown_live(job.metric) as show:
            run = train(
                job,
                fit=fit,
                run_directory=directory,
                fresh=fresh and out is not None,
                saving=Saving(**(saving or {})),
                listeners=[place_teller(directory, goes_on), show, plan_beside(directory)],
                splits=splits,
                **settings,
            )
    except BaseException:
        if not out:
            forget_unborn(run)
        raise
    tell_end(run)


def go_to_background(choice: "Choice") -> None:
    """Start this command again without a terminal, and say how to watch and stop it."""
    from fitune.cli.render import say
    from fitune.cli.running import start_detached
    from fitune.runs import Run

    directory = choice.directory
    tell_place(directory, choice.kind == "goes_on")
    # What is set aside takes its log with it.
    log = Run(directory).log_path if choice.set_aside is None else directory.with_name(f"{directory.name}.log")
    pid = start_detached(directory, log)
    say(_("At work in the background (process {pid}).", pid=pid))
    say(_("Watch it: fitune attach {path}   Stop it: fitune stop {path}", path=directory))


def look_first(job: Job, unborn: "Run | None") -> "Splits":
    """The rows, read before torch is imported: what is wrong with files, labels or model is said at once.

    Raises:
        Refusal: a file that cannot be read or learned from; no such model, or nobody who delivers it. ``unborn``, a
            directory made for this run, is gone then.
    """
    from fitune.hf import resolve
    from fitune.training import read_splits

    try:
        splits = read_splits(job)
        resolve(job.model, job.task or splits.rows.task)
    except BaseException:
        if unborn is not None:
            forget_unborn(unborn)
        raise
    return splits


def tell_place(directory: "Path", goes_on: bool) -> None:
    """Where the run is."""
    from fitune.cli.render import say

    say(_("Run directory: {path}", path=directory))
    if goes_on:
        say(_("Going on with this run; to begin anew, add --fresh."))


def place_teller(directory: "Path", goes_on: bool) -> "Callable[[object], None]":
    """A listener that tells where the run is with its first event: only then is nothing left to refuse."""
    told: list[object] = []

    def tell(event: object) -> None:
        if not told:
            tell_place(directory, goes_on)
        told.append(event)

    return tell


def forget_unborn(run: "Run") -> None:
    """A directory made here for a run that never began is noise."""
    if not run.directory.is_dir() or run.job_path.exists():
        return
    for left in ("identity.json", "lock.guard"):
        (run.directory / left).unlink(missing_ok=True)
    if not any(run.directory.iterdir()):
        run.directory.rmdir()


def tell_end(run: "Run") -> None:
    """Scores, where everything lies, and the exit code that the run's last event names."""
    from fitune.cli.render import say, show_scores

    if run.evaluation is not None:
        show_scores(run.evaluation)
    if run.model_path.is_dir():
        say(_("Model:  {path}", path=run.model_path))
    if run.report_path.is_file():
        say(_("Report: {path}", path=run.report_path))
    stopped = next((e for e in reversed(run.events()) if e.kind == "stopped"), None)
    if stopped is not None and (code := stopped.data.get("exit_code")):
        raise SystemExit(int(code))
