"""``fitune runs``: what is here, and how far it is."""

from typing import Annotated, Any

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def runs(
        folder: Annotated[str, typer.Argument(metavar="DIR", help=_("Where the runs are."))] = "runs",
    ) -> None:
        from pathlib import Path

        from fitune.cli.render import say, table
        from fitune.runs import Run

        found = [Run(path.parent) for path in Path(folder).glob("*/job.toml")]
        if not found:
            say(_("No runs in {path}.", path=folder))
            return
        found.sort(key=lambda run: run.job_path.stat().st_mtime)
        table([_row(run) for run in found], [_("run"), _("state"), _("step"), _("best"), _("last sign of life")])

    add_verb(app, "runs", runs, _("List the runs: which are at work, which are done, how good they are."))


def _row(run: Any) -> list[str]:
    import time

    from fitune.runs import metric_text
    from fitune.values import Event

    events: list[Event] = run.events()
    total = next((e.data.get("steps_total") for e in reversed(events) if e.kind == "started"), None)
    metric = run.job.metric or ""
    best = next(
        (
            e.data["metrics"].get(metric)
            for e in reversed(events)
            if e.kind == "evaluation" and e.data.get("best") and e.data.get("split") == "dev"
        ),
        None,
    )
    step = events[-1].step if events else 0
    shown = f"{metric} {metric_text(metric, best)}" if isinstance(best, int | float) else ""
    at = time.strftime("%m-%d %H:%M", time.localtime(events[-1].time)) if events else ""
    return [run.name, _state(run, events), f"{step}/{total or '?'}", shown, at]


def _state(run: Any, events: list[Any]) -> str:
    from fitune.cli.progress import reason_text
    from fitune.cli.running import worker_of

    worker = worker_of(run)
    if worker is not None:
        return _("at work (process {pid})", pid=worker["pid"])
    last = next((e for e in reversed(events) if e.kind in ("stopped", "started", "resumed")), None)
    if last is not None and last.kind == "stopped":
        return reason_text(last.data.get("reason"))
    return _("broken off; the same command goes on")
