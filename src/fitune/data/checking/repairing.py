"""Repairs that are safe: nothing that the user meant is changed. Used by ``check --fix OUT``."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fitune.data.checking.texts import Key, gold, key
from fitune.data.rows import Rows
from fitune.messages import _n
from fitune.values import Example, Source, Span


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that ``repair`` did."""

    code: str
    """The finding that it mends."""
    source: Source | None
    before: str
    """What stood there; of a row that could not be used (FT114), the reason."""
    after: str
    """"" when the row was removed."""


def repair(rows: Rows) -> tuple[Rows, list[Change]]:
    """A repaired copy, and every change.

    U+FEFF is removed (offsets move along), entities lose whitespace at their ends, entities of nothing but whitespace
    and entities given twice are removed, and so are empty rows and rows that repeat text and labels of an earlier
    one. Invalid tags were read as entities already, and are valid when written; rows that could not be used are not
    written at all: these are changes as well.
    """
    changes = [Change("FT114", skipped.source, skipped.reason, "") for skipped in rows.skipped]
    kept: list[Example] = []
    seen: dict[Key, list[object]] = {}
    for example in rows.examples:
        mended = _spans(_without_marks(example, changes), changes)
        if not mended.text.strip():
            changes.append(Change("FT111", example.source, example.text, ""))
            continue
        golds = seen.setdefault(key(mended), [])
        if gold(mended) in golds:
            changes.append(Change("FT101", example.source, example.text, ""))
            continue
        golds.append(gold(mended))
        kept.append(mended)
    places = {example.source for example in kept}
    changes += [Change("FT109", tag.source, tag.before, tag.after) for tag in rows.mended_tags if tag.source in places]
    return replace(rows, examples=kept), changes


def summary(changes: Sequence[Change]) -> list[str]:
    """What was changed how often, for people: one line a kind."""
    told: list[str] = []
    for code, n in sorted(Counter(change.code for change in changes).items()):
        match code:
            case "FT101":
                line = _n("one repeated row removed", "{count} repeated rows removed", n)
            case "FT109":
                line = _n("one tag made valid", "{count} tags made valid", n)
            case "FT110":
                line = _n("the ends of entities mended in one row", "the ends of entities mended in {count} rows", n)
            case "FT111":
                line = _n("one empty row removed", "{count} empty rows removed", n)
            case "FT114":
                line = _n("one row left out that could not be used", "{count} rows left out that could not be used", n)
            case _:
                line = _n("U+FEFF taken out of one text", "U+FEFF taken out of {count} texts", n)
        told.append(f"{code} {line}")
    return told


def _without_marks(example: Example, changes: list[Change]) -> Example:
    if "\ufeff" not in example.text and "\ufeff" not in (example.text_pair or ""):
        return example
    text = example.text
    spans: list[Span] = []
    for span in example.spans or ():
        start = span.start - text.count("\ufeff", 0, span.start)
        end = span.end - text.count("\ufeff", 0, span.end)
        if start < end:
            spans.append(replace(span, start=start, end=end))
    pair = example.text_pair
    mended = replace(
        example,
        text=text.replace("\ufeff", ""),
        text_pair=None if pair is None else pair.replace("\ufeff", ""),
        spans=None if example.spans is None else tuple(spans),
    )
    changes.append(Change("FT115", example.source, text, mended.text))
    return mended


def _spans(example: Example, changes: list[Change]) -> Example:
    if not example.spans:
        return example
    spans = tuple(dict.fromkeys(span for s in example.spans if (span := _trimmed(example.text, s))))
    if spans == example.spans:
        return example
    changes.append(Change("FT110", example.source, _shown(example.text, example.spans), _shown(example.text, spans)))
    return replace(example, spans=spans)


def _trimmed(text: str, span: Span) -> Span | None:
    start, end = span.start, span.end
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    if start == end:
        return None
    return span if (start, end) == (span.start, span.end) else replace(span, start=start, end=end)


def _shown(text: str, spans: Sequence[Span]) -> str:
    return ", ".join(f"{s.label} {text[s.start : s.end]!r}" for s in spans)
