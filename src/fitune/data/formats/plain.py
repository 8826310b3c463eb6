"""Plain text: one text a line, without labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fitune.data.formats.base import Sample, TextFormat, one_line
from fitune.data.formats.delimited import records, split_quoted
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction, Refusal, Source


def recognize(sample: Sample) -> Format | None:
    """Any text at all: asked last. But a table whose columns nothing could make sense of is no text.

    Raises:
        Refusal: the file is named .csv or .tsv, and nearly all its rows have as many cells as the first.
    """
    separator = {".csv": ",", ".tsv": "\t"}.get(sample.path.suffix.lower())
    lines = [line for line in sample.lines[:200] if line.strip()]
    if separator is not None and lines and not sample.forced:
        width = len(split_quoted(lines[0], separator) or lines[0].split(separator))
        # A quoted cell may hold line ends: rows are counted, not lines.
        widths = [len(cells) for _number, cells, _line in records(lines, separator, width, quoting=True)]
        if width > 1 and widths.count(width) >= 0.8 * len(widths):
            raise Refusal(
                _("no column could be told to hold labels; the columns are: {known}", known=lines[0][:200]),
                where=f"{sample.path}:1",
                next_step=_("Name them: --text-column NAME --label-column NAME; or read lines with --format text"),
                code="FT195",
            )
    return Format(name="text", evidence=_("one text a line; no labels found"))


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    file = tally.file
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            tally.structure["blank"] += 1
            continue
        tally.rows += 1
        yield Example(line, source=Source(file, number))


def dump(items: Iterable[Example | Prediction], format: Format) -> Iterator[str]:
    """Texts alone: a prediction's labels follow after a tab, its entities as ``mention/type``."""
    for item in items:
        text = one_line(item, "text")
        if isinstance(item, Prediction) and item.labels is not None:
            yield f"{text}\t{','.join(item.labels)}"
        elif isinstance(item, Prediction) and item.spans is not None:
            yield text + "".join(f"\t{text[s.start : s.end]}/{s.label}" for s in item.spans)
        else:
            yield text


TEXT = TextFormat("text", recognize, parse, dump)
