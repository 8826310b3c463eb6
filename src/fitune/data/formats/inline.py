"""Entities marked in the text: ``{{person:周小禾}}住在{{place:青岛}}``, one text a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fitune.data.formats.base import Sample, TextFormat, not_expressible, one_line
from fitune.data.rows import Format, Tally
from fitune.data.schemes import flatten
from fitune.messages import _
from fitune.values import Example, Prediction, Source, Span

_MARK = re.compile(r"\{\{([^:：{}\s][^:：{}]*)[:：](.+?)\}\}")


def recognize(sample: Sample) -> Format | None:
    lines = [line for line in sample.lines if line and not line.isspace()]
    marked = sum(1 for line in lines if _MARK.search(line))
    if not marked or marked < 0.05 * len(lines):
        return None
    told = _(
        "entities marked as {example} in {marked} of the first {lines} lines",
        example="{{type:mention}}",
        marked=marked,
        lines=len(lines),
    )
    return Format(name="inline", task="ner", evidence=told)


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            tally.structure["blank"] += 1
            continue
        tally.rows += 1
        pieces: list[str] = []
        spans: list[Span] = []
        length = done = 0
        for mark in _MARK.finditer(line):
            before = line[done : mark.start()]
            pieces += [before, mark[2]]
            length += len(before)
            spans.append(Span(length, length + len(mark[2]), mark[1].strip()))
            length += len(mark[2])
            done = mark.end()
        rest = line[done:]
        if "{{" in rest or any("{{" in piece for piece in pieces):
            tally.note(_("lines with braces that open no mark, read as plain characters"))
        yield Example("".join(pieces) + rest, tuple(spans), source=Source(tally.file, number))


def dump(items: Iterable[Example | Prediction], format: Format) -> Iterator[str]:
    """Scores have no place in this format."""
    for item in items:
        text = one_line(item, "inline")
        pieces: list[str] = []
        done = 0
        spans = flatten(item.spans or ())[0]
        for span in spans:
            mention = text[span.start : span.end]
            pieces.append(text[done : span.start])
            pieces.append(f"{{{{{span.label}:{mention}}}}}")
            done = span.end
        line = "".join(pieces) + text[done:]
        marks = [(mark[1], mark[2]) for mark in _MARK.finditer(line)]
        # Braces of the text's own may open or close a mark: what would be read back has to be the same.
        if marks != [(span.label, text[span.start : span.end]) for span in spans]:
            raise not_expressible(item, "inline", _("braces of its own"))
        yield line


INLINE = TextFormat("inline", recognize, parse, dump)
