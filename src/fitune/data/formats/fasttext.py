"""fastText's training lines: ``__label__正面 很好，下次还来``, one label or several, before the text or behind it.

A label is a word that begins with ``__label__`` (fastText's own default of ``-label``); words end at a blank or a tab.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fitune.data.formats.base import Sample, TextFormat, not_expressible, one_line
from fitune.data.formats.tables import RowMaker
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction

_MARK = "__label__"
_BEFORE = re.compile(rf"[ \t]*((?:{_MARK}[^ \t]+(?:[ \t]+|\Z))+)")
_BEHIND = re.compile(rf"(?:[ \t]+{_MARK}[^ \t]+)+[ \t]*\Z")


def recognize(sample: Sample) -> Format | None:
    lines = [line for line in sample.lines if line and not line.isspace()]
    marked = [line for line in lines if _MARK in line]
    if not marked or len(marked) < (0.1 if sample.forced else 0.9) * len(lines):
        return None
    cut = [(before, labels) for line in marked for labels, text, before in [_cut(line)] if labels and text]
    if len(cut) < 0.9 * len(marked):
        return None
    before = sum(first for first, _labels in cut) * 2 >= len(cut)
    several = any(len(labels) > 1 for _first, labels in cut)
    return Format(
        name="fasttext",
        task="classification",
        details={"labels": "before" if before else "behind"},
        evidence=_(
            "fastText lines: words that begin with {mark} are labels, {side} the text{several}",
            mark=_MARK,
            side=_("before") if before else _("behind"),
            several=_("; several to a line") if several else "",
        ),
    )


def _cut(line: str) -> tuple[list[str], str, bool]:
    """(labels, text, do the labels stand before the text)"""
    found = _BEFORE.match(line)
    if found is not None:
        words, text = found[1], line[found.end() :]
    elif (found := _BEHIND.search(line)) is not None:
        words, text = found[0], line[: found.start()]
    else:
        return [], line, False
    return list(dict.fromkeys(word[len(_MARK) :] for word in words.split())), text, found.start() == 0


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    make = RowMaker(format, tally).example
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            tally.structure["blank"] += 1
            continue
        labels, text, _before = _cut(line)
        example = make(number, text, None, labels or None)
        if example is not None:
            yield example


def dump(items: Iterable[Example | Prediction], format: Format) -> Iterator[str]:
    """A predicted text that no label belongs to stands alone."""
    for item in items:
        text = one_line(item, "fasttext")
        labels = list(dict.fromkeys(item.labels or ()))
        words = [_MARK + label for label in labels]
        line = " ".join([*words, text] if format.details.get("labels") == "before" else [text, *words])
        # Blanks in a label, or a text that begins with a label of its own, would be read otherwise.
        if _cut(line)[:2] != (labels, text) or (not labels and item.labels is not None and isinstance(item, Example)):
            raise not_expressible(item, "fasttext", _("these labels and this text: {line}", line=repr(line[:80])))
        yield line


FASTTEXT = TextFormat("fasttext", recognize, parse, dump)
