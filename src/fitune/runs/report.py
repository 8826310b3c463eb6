"""``report.html``: one page that says what a run did, opens offline and prints well."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fitune import __version__
from fitune.messages import _, language
from fitune.runs.charts import bar_chart, line_chart
from fitune.runs.evaluation import Confusion
from fitune.runs.run import Run
from fitune.values import Estimate, Event, Job, Span

_CONTEXT_CHARACTERS = 40
_WHOLE_TEXT_CHARACTERS = 400


@dataclass(frozen=True)
class Piece:
    """A stretch of text under the same spans."""

    text: str
    labels: tuple[str, ...] = ()
    wrong: bool = False


def marked(text: str, spans: Sequence[Span], others: Iterable[Span] = ()) -> list[Piece]:
    """``text`` cut at the edges of ``spans``, each piece with the labels over it.

    A piece is ``wrong`` when one of its spans is not among ``others``. Of a long text only the surroundings of the
    spans (of both sides) are kept, with an ellipsis for what is left out.
    """
    right = {(s.start, s.end, s.label) for s in others}
    every = [*spans, *others]
    edges = {0, len(text), *(edge for s in spans for edge in (s.start, s.end) if edge <= len(text))}
    shown = _shown(text, every)
    edges |= {edge for stretch in shown for edge in stretch}
    pieces: list[Piece] = []
    ordered = sorted(edges)
    for start, end in pairwise(ordered):
        if not any(low <= start and end <= high for low, high in shown):
            pieces.append(Piece(" … "))
            continue
        over = [s for s in spans if s.start <= start and end <= s.end]
        wrong = any((s.start, s.end, s.label) not in right for s in over)
        pieces.append(Piece(text[start:end], tuple(s.label for s in over), wrong))
    return pieces


def _shown(text: str, spans: Iterable[Span]) -> list[tuple[int, int]]:
    """The stretches of ``text`` that are printed, merged, in order."""
    if len(text) <= _WHOLE_TEXT_CHARACTERS:
        return [(0, len(text))]
    around = sorted((max(0, s.start - _CONTEXT_CHARACTERS), min(len(text), s.end + _CONTEXT_CHARACTERS)) for s in spans)
    merged: list[tuple[int, int]] = []
    for start, end in around or [(0, _WHOLE_TEXT_CHARACTERS)]:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def charts(events: Sequence[Event]) -> list[tuple[str, Markup]]:
    """(title, SVG) for each curve that the events hold."""
    steps = [e for e in events if e.kind == "step"]

    def curve(name: str) -> list[tuple[float, float]]:
        return [(e.step, float(e.data[name])) for e in steps if isinstance(e.data.get(name), int | float)]

    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for event in events:
        if event.kind == "evaluation":
            split = str(event.data.get("split", "dev"))
            for name, value in event.data.get("metrics", {}).items():
                if isinstance(value, int | float):
                    # In per cent, as in every table; losses as they are.
                    value = value if "loss" in name else 100 * value
                    found.setdefault(split, {}).setdefault(name, []).append((event.step, float(value)))
    dev = found.get("dev", {})
    losses = [(_("training"), curve("loss")), (_("development"), dev.get("loss", []))]
    scores = [(name, points) for name, points in dev.items() if "loss" not in name]
    rates = [(_("learning rate"), curve("learning_rate"))]
    pictures = [
        (_("Loss by step: {names}", names=_names(losses)), line_chart(losses, label=_("loss"))),
        (
            _("Development scores by step, in per cent: {names}", names=_names(scores[:4])),
            line_chart(scores[:4], label=_("development scores"), dots=True),
        ),
        (_("Learning rate by step"), line_chart(rates, label=_("learning rate"))),
    ]
    return [(title, Markup(svg)) for title, svg in pictures if svg]


def _names(series: Sequence[tuple[str, Sequence[object]]]) -> str:
    return ", ".join(name for name, points in series if points)


def predicted_beside_measured(
    estimate: Estimate | None, peak_bytes: int | None, seconds: float | None, context_bytes: int = 0
) -> list[tuple[str, str, str]]:
    """(what, predicted, measured) for what is known on both sides or either; empty: nothing to compare.

    ``context_bytes`` is what the estimate counts for the driver's own memory: PyTorch cannot measure that, so it is
    taken off the prediction and said.
    """
    if estimate is None:
        return []
    low, high = estimate.predicted_seconds_low, estimate.predicted_seconds_high
    time = duration(estimate.predicted_seconds)
    if low is not None and high is not None:
        time = f"{time} ({duration(low)} - {duration(high)})"
    memory = _("peak memory")
    if context_bytes:
        memory = _(
            "peak memory that PyTorch holds, without the {context} that the driver takes for the process",
            context=gib(context_bytes),
        )
    return [
        (memory, gib(max(0, estimate.predicted_peak_bytes - context_bytes)), gib(peak_bytes)),
        (_("time"), time, duration(seconds)),
    ]


def gib(count_bytes: int | None) -> str:
    """Bytes for people."""
    return "-" if count_bytes is None else f"{count_bytes / 2**30:.2f} GiB"


def duration(seconds: float | None) -> str:
    """Seconds for people."""
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def score(value: float | None) -> str:
    """A score in [0, 1] as it is printed everywhere: in per cent with two places."""
    return "-" if value is None else f"{100 * value:.2f}"


def metric_text(name: str, value: float | None) -> str:
    """Losses as they are, scores in per cent."""
    if value is None:
        return "-"
    return f"{value:.4f}" if "loss" in name else score(value)


def confusion_rows(confusion: Confusion) -> list[tuple[str, list[tuple[int, float, bool]]]]:
    """(gold label, [(count, share of the row, on the diagonal)])."""
    rows: list[tuple[str, list[tuple[int, float, bool]]]] = []
    for i, (label, counts) in enumerate(zip(confusion.labels, confusion.counts, strict=True)):
        total = sum(counts) or 1
        rows.append((label, [(count, count / total, i == j) for j, count in enumerate(counts)]))
    return rows


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("fitune.runs", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_report(run: Run) -> str:
    """The whole page as text, in the reader's language; nothing in it points outside."""
    evaluation, events, plan = run.evaluation, run.events(), run.plan
    lengths = evaluation.lengths_tokens if evaluation else None
    started = next((e for e in reversed(events) if e.kind == "started"), None)
    stopped = next((e for e in reversed(events) if e.kind == "stopped"), None)
    noted = [e for e in events if e.kind in ("warning", "micro_batch", "resumed", "stopped")]
    context: dict[str, Any] = {
        "_": _,
        "marked": marked,
        "score": score,
        "metric_text": metric_text,
        "confusion_rows": confusion_rows,
        "duration": duration,
        "language": "zh-CN" if language() == "zh" else "en",
        "run": run,
        "job": run.job,
        "fields": list(Job.model_fields),
        "plan": plan,
        "evaluation": evaluation,
        "charts": charts(events),
        "lengths": Markup(bar_chart(lengths.edges, lengths.counts, label=_("text lengths"))) if lengths else "",
        "started": _when(started),
        "stopped": stopped,
        "noted": [(_when(e), e) for e in noted],
        "comparison": predicted_beside_measured(
            plan.estimate if plan else None,
            evaluation.measured_peak_bytes if evaluation else None,
            evaluation.measured_seconds if evaluation else None,
            plan.card.context_bytes if plan and plan.card else 0,
        ),
        "command": f"fitune train {shlex.quote(str(run.job_path))} --out {shlex.quote(str(run.directory) + '-again')}",
        "version": __version__,
    }
    return _environment().get_template("report.html").render(context)


def _when(event: Event | None) -> str:
    if event is None:
        return "-"
    return datetime.fromtimestamp(event.time, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def write_report(run: Run) -> Path:
    """Write ``report.html`` into the run's directory and return its path. Works at any time, also during training."""
    beside = run.report_path.with_name("report.html.new")
    beside.write_text(render_report(run), encoding="utf-8")
    beside.replace(run.report_path)
    return run.report_path
