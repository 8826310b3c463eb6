"""Values into terminal text. Colours only on a terminal, and never where NO_COLOR is set."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fitune.cli.guard import fix_text, unless_full
from fitune.messages import _
from fitune.runs import Evaluation, metric_text
from fitune.values import Finding, Prediction

_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
_LABEL_STYLES = ("black on cyan", "black on green", "black on yellow", "black on magenta", "white on blue")


@cache
def screen() -> Console:
    """Standard output. Users' text is shown as it is: no markup, no emoji codes, no guessing of highlights."""
    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)


def say(text: str | Text = "", style: str = "") -> None:
    """One line on the screen, or in the log that takes its place."""
    with unless_full():
        screen().print(text, style=style or None)


def show_findings(findings: Iterable[Finding]) -> None:
    """Each finding with up to three rows of evidence, and what to do."""
    for finding in findings:
        line = Text(f"{finding.code} ", style=_STYLES[finding.severity])
        line.append(finding.title, style="default")
        # Most titles say it themselves.
        if finding.count > 1 and not re.search(rf"(?<!\d){finding.count}(?!\d)", finding.title):
            line.append(f" ({finding.count})", style="default")
        say(line)
        for evidence in finding.evidence[:3]:
            say(f"    {evidence}", "dim")
        for fix in finding.fixes:
            say(f"    -> {fix_text(fix)}")


def table(rows: Sequence[Sequence[str]], head: Sequence[str], *, right: Sequence[int] = ()) -> None:
    """Plain columns, as wide as their text (Chinese counts double); ``right``: columns of figures."""
    grid = Table(box=None, pad_edge=False, header_style="dim")
    for number, title in enumerate(head):
        grid.add_column(title, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    console = screen()
    # On a pipe nothing knows how wide the reader is: lines are never broken there.
    if not console.is_terminal:
        console = Console(width=10_000, markup=False, emoji=False, highlight=False)
    console.print(grid, soft_wrap=False, crop=False)


def show_scores(evaluation: Evaluation) -> None:
    """One row for each split, the linear baseline beside; then the labels of the last split."""
    names = list(dict.fromkeys(name for part in evaluation.splits.values() for name in part.metrics))
    rows: list[list[str]] = []
    for split, part in evaluation.splits.items():
        rows.append([split, *(metric_text(n, part.metrics.get(n)) for n in names)])
        if part.metrics_without_seen is not None:
            title = _("{split}, without {rows} rows seen in training", split=split, rows=part.rows_seen)
            rows.append([title, *(metric_text(n, part.metrics_without_seen.get(n)) for n in names)])
        if split in evaluation.baseline:
            title = _("{split}, linear baseline", split=split)
            rows.append([title, *(metric_text(n, evaluation.baseline[split].get(n)) for n in names)])
    table(rows, ["", *names], right=range(1, len(names) + 1))


def show_metrics(by_split: Mapping[str, Mapping[str, float]]) -> None:
    """One row for each split."""
    names = list(dict.fromkeys(name for metrics in by_split.values() for name in metrics))
    rows = [[split, *(metric_text(n, m.get(n)) for n in names)] for split, m in by_split.items()]
    table(rows, ["", *names], right=range(1, len(names) + 1))


def show_prediction(prediction: Prediction) -> None:
    """For a reader on a terminal: entities marked in the text, or classes with their probability."""
    styles: dict[str, str] = {}
    text = Text(prediction.text)
    for span in prediction.spans or ():
        style = styles.setdefault(span.label, _LABEL_STYLES[len(styles) % len(_LABEL_STYLES)])
        text.stylize(style, span.start, span.end)
    say(text)
    for span in prediction.spans or ():
        score = "" if span.score is None else f"  {span.score:.3f}"
        say(f"    {prediction.text[span.start : span.end]}  {span.label}  [{span.start}, {span.end}){score}")
    if prediction.spans is not None and not prediction.spans:
        say("    " + _("no entities"))
    if prediction.labels is not None:
        scores = prediction.scores or {}
        chosen = ", ".join(f"{label} {scores[label]:.3f}" if label in scores else label for label in prediction.labels)
        say("    " + (chosen or _("no class reaches its threshold")))


def show_json(value: Any) -> None:
    """One line of JSON; where the output cannot show every character, they are escaped, so nothing is lost."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    sys.stdout.write(json.dumps(value, ensure_ascii=encoding not in ("utf8", "utf16", "utf32")) + "\n")
