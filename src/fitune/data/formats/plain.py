"""Plain text: one text a line, without labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fitune.data.formats.base import Sample, TextFormat, one_line
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction, Source


def recognize(sample: Sample) -> Format | None:
    """Any text at all: asked last."""
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
