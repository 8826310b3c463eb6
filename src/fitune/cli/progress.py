"""The live view of a run, from its events alone: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fitune.cli.render import say, screen
from fitune.messages import _
from fitune.runs import metric_text
from fitune.values import Event, Prediction

if TYPE_CHECKING:
    from fitune.data import Stream

SHOWN_SECONDS = 0.1

PLAIN_SECONDS = 15.0
"""Least time between two lines about steps where there is no bar."""


class View:
    """Turns events into screen text; knows the best score so far."""

    def __init__(self, bar: Progress | None, metric: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._metric, self._clock = bar, metric, clock
        self._task = None if bar is None else bar.add_task("", total=None, figures="")
        self._total: int | None = None
        self._best: float | None = None
        self._loss: float | None = None
        self._rate: float | None = None
        self._said_at = float("-inf")

    def see(self, event: Event) -> None:
        """Show one event."""
        data = event.data
        if event.kind == "started":
            total = data.get("steps_total")
            self._total = total if isinstance(total, int) else None
            self._metric = data.get("metric") or self._metric
            parts = [str(data[key]) for key in ("device", "precision") if data.get(key)]
            say(_("Training: {total} steps at most, on {where}", total=self._total or "?", where=" ".join(parts)))
            if note := (data.get("pace") or {}).get("compile_note"):
                say(str(note))
        elif event.kind == "step":
            self._loss = _number(data.get("loss"), self._loss)
            self._rate = _number(data.get("learning_rate"), self._rate)
            self._show_step(event)
        elif event.kind == "evaluation":
            self._show_evaluation(event)
        elif event.kind == "warning":
            say(f"{data.get('code', '')} {data.get('text', '')}".strip(), "yellow")
        elif event.kind == "micro_batch":
            say(
                _(
                    "step {step}: micro-batch {old} -> {new} tokens ({reason})",
                    step=event.step,
                    old=data.get("from_tokens"),
                    new=data.get("to_tokens"),
                    reason=data.get("reason"),
                ),
                "yellow",
            )
        elif event.kind == "resumed":
            say(_("going on from step {step}", step=event.step))
        elif event.kind == "stopped":
            say(_("stopped at step {step}: {reason}", step=event.step, reason=reason_text(data.get("reason"))))

    def _figures(self) -> str:
        parts: list[str] = []
        if self._loss is not None:
            value = f"{self._loss:.4f}"
            parts.append(_("loss {value}", value=value))
        if self._rate is not None:
            value = f"{self._rate:.1e}"
            parts.append(_("rate {value}", value=value))
        if self._best is not None and self._metric:
            parts.append(_("best {metric} {value}", metric=self._metric, value=metric_text(self._metric, self._best)))
        return "  ".join(parts)

    def _show_step(self, event: Event) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=self._total, completed=event.step, figures=self._figures())
        elif self._clock() - self._said_at >= PLAIN_SECONDS:
            self._said_at = self._clock()
            say(_("step {step}/{total}", step=event.step, total=self._total or "?") + "  " + self._figures())

    def _show_evaluation(self, event: Event) -> None:
        metrics = {n: v for n, v in event.data.get("metrics", {}).items() if isinstance(v, int | float)}
        if self._metric is None:
            self._metric = next((n for n in metrics if "loss" not in n), None)
        if self._metric in metrics and event.data.get("best", True):
            self._best = metrics[self._metric]
        scores = "  ".join(f"{name} {metric_text(name, value)}" for name, value in metrics.items())
        mark = "  *" if event.data.get("best") else ""
        where = _("step {step}", step=event.step)
        say(f"{event.data.get('split', 'dev')} ({where}): {scores}{mark}")


def reason_text(reason: object) -> str:
    """Why a run stopped, in words."""
    words = {
        "finished": _("all epochs done"),
        "early_stop": _("no more improvement"),
        "interrupted": _("interrupted, everything is saved"),
        "deadline": _("the deadline has come, everything is saved"),
        "budget": _("the budget is spent, everything is saved"),
        "failed": _("failed"),
        "disk": _("the disk took no more; the same command goes on from what was saved before, if anything was"),
    }
    return words.get(str(reason), str(reason))


def _number(value: object, otherwise: float | None) -> float | None:
    return float(value) if isinstance(value, int | float) else otherwise


@contextmanager
def _bar() -> Generator[Progress | None, None, None]:
    if not screen().is_terminal:
        yield None
        return
    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total}"),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        TextColumn("/"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen(), transient=True) as progress:
        yield progress


def show_events(events: Iterable[Event], metric: str | None = None) -> None:
    """Show events until they end."""
    with _bar() as bar:
        view = View(bar, metric)
        for event in events:
            view.see(event)


@contextmanager
def shown_live(metric: str | None = None) -> Generator[Callable[[Event], None], None, None]:
    """A listener whose events are shown while the body runs, as ``attach`` shows them from outside.

    Handed over directly: on a full disk, events.jsonl may lag behind just when there is most to say.
    """
    waiting: SimpleQueue[Event | None] = SimpleQueue()
    thread = threading.Thread(target=lambda: show_events(iter(waiting.get, None), metric), daemon=True)
    thread.start()
    try:
        yield waiting.put
    finally:
        waiting.put(None)
        thread.join(timeout=5)


LARGEST_COUNTED_BYTES = 2**30
"""A larger file has no total: counting its lines would take longer than a second."""


def counted(predictions: Iterable[Prediction], rows: Stream, *, own_line: bool) -> Generator[Prediction, None, None]:
    """The same predictions, with a bar on standard error where that is a terminal.

    The bar goes by the lines of the file that are done. ``own_line``: the predictions go to standard output; where that
    is the same terminal there is no bar between them.
    """
    console = Console(stderr=True)
    if not console.is_terminal or (own_line and screen().is_terminal):
        yield from predictions
        return
    columns = (
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        TextColumn("/"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # Standard output is not the bar's business: rich would print the predictions above it, on standard error.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False) as progress:
        task = progress.add_task("", total=_lines_of(rows), figures="")
        shown = time.monotonic()
        for done, prediction in enumerate(predictions, 1):
            yield prediction
            if (now := time.monotonic()) - shown > SHOWN_SECONDS:
                shown = now
                line = prediction.source.line if prediction.source else None
                progress.update(task, completed=line, figures=_("{rows} rows", rows=done))


def _lines_of(rows: Stream) -> int | None:
    """Lines of the file; None where a row's number is not that of a line, or where counting takes long."""
    path = Path(rows.path)
    if rows.format.name in ("excel", "parquet") or path.stat().st_size > LARGEST_COUNTED_BYTES:
        return None
    with path.open("rb") as file:
        return 1 + sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))
