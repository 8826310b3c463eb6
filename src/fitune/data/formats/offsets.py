"""What the numbers of a stored span mean: found by comparing the stored mention with the text, never assumed.

Files differ in whether the end is the last character or the one after it, and in whether they count characters or
UTF-16 units (annotation tools that run in a browser do: after an emoji their offsets are one too high).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from fitune.data.rows import Tally
from fitune.messages import _
from fitune.values import Span


class Stored(NamedTuple):
    """A span as it stands in the file."""

    start: object
    end: object
    label: object
    mention: str | None = None


class Convention(NamedTuple):
    """How to read the two numbers."""

    inclusive: bool = False
    """The end is the last character, not the one after it."""
    utf16: bool = False
    """UTF-16 units are counted, not characters."""

    def details(self) -> dict[str, object]:
        return {"ends": "inclusive" if self.inclusive else "exclusive", "unit": "utf16" if self.utf16 else "character"}

    @classmethod
    def from_details(cls, details: dict[str, object]) -> Convention:
        return cls(details.get("ends") == "inclusive", details.get("unit") == "utf16")


EXCLUSIVE = Convention()
_ALL = (EXCLUSIVE, Convention(inclusive=True), Convention(utf16=True), Convention(inclusive=True, utf16=True))


class Detected(NamedTuple):
    convention: Convention
    evidence: str


class BadSpan(ValueError):
    """A span that cannot be placed; its text is for people."""


def detect_convention(rows: Iterable[tuple[str, list[Stored]]]) -> Detected:
    """The convention under which most stored mentions equal the text; without mentions, the only one that fits."""
    fits: Counter[Convention] = Counter()
    shorter: set[str] = set()
    longer: set[str] = set()
    compared = unnamed = empty = at_end = beyond = beyond_utf16 = 0
    for text, spans in rows:
        astral = is_astral(text)
        for span in spans:
            start, end = whole(span.start), whole(span.end)
            if start is None or end is None:
                continue
            if span.mention is None:
                unnamed += 1
                empty += start == end
                at_end += end == len(text)
                if start < end:
                    shorter.add(text[start:end])
                    longer.add(text[start : end + 1])
                beyond += end > len(text)
                beyond_utf16 += astral and len(text) < end <= len(text) + sum(c > "\uffff" for c in text)
                continue
            compared += 1
            for convention in _ALL:
                if convention.utf16 <= astral and _slice(text, start, end, convention) == span.mention:
                    fits[convention] += 1
                    if not astral:
                        fits[convention._replace(utf16=True)] += 1
    if compared:
        best = max(_ALL, key=lambda c: fits[c])
        evidence = _(
            "{fits} of {compared} stored mentions equal the text when the end is {ends} and {unit} are counted",
            fits=fits[best],
            compared=compared,
            ends=_("the last character") if best.inclusive else _("the character after the last"),
            unit=_("UTF-16 units") if best.utf16 else _("characters"),
        )
        return Detected(best, evidence)
    # A one-character mention has start = end under inclusive ends. But spans may also be empty by mistake: then one
    # ends at the text's length, or reading one character more makes the same mention look different each time.
    inclusive = empty > 0 and at_end == 0 and len(longer) <= len(shorter)
    best = Convention(inclusive=inclusive, utf16=beyond_utf16 > 0 and beyond_utf16 == beyond)
    if best.inclusive:
        return Detected(best, _("{count} spans have start = end, so the end is the last character", count=empty))
    if best.utf16:
        return Detected(best, _("{count} spans end after the text unless UTF-16 units are counted", count=beyond))
    if unnamed:
        return Detected(best, _("no mention is stored with the spans; ends are taken as the character after the last"))
    return Detected(best, _("no spans in the first rows"))


def place(text: str, stored: Iterable[Stored], convention: Convention, tally: Tally) -> tuple[Span, ...]:
    """Spans in characters of ``text``, sorted. Raises BadSpan on one that has no place in it."""
    found: set[Span] = set()
    for raw_start, raw_end, label, mention in stored:
        start, end = whole(raw_start), whole(raw_end)
        if start is None or end is None:
            raise BadSpan(_("a span's offsets are no whole numbers: {start}, {end}", start=raw_start, end=raw_end))
        name = label_name(label)
        if not name:
            raise BadSpan(_("the span [{start}, {end}] has no label", start=start, end=end))
        if convention is EXCLUSIVE or not convention.utf16:
            begin, stop = start, end + convention.inclusive
        else:
            begin, stop = to_characters(text, start, end + convention.inclusive)
        if mention is not None and text[begin:stop] != mention:
            begin, stop = _by_mention(text, start, end, mention, convention, tally)
        if not 0 <= begin < stop <= len(text):
            raise BadSpan(
                _(
                    "the span [{start}, {end}] {label} does not lie in the text of {length} characters",
                    start=start,
                    end=end,
                    label=name,
                    length=len(text),
                )
            )
        found.add(Span(begin, stop, name))
    return tuple(sorted(found, key=lambda s: (s.start, s.end, s.label))) if len(found) > 1 else tuple(found)


def store(text: str, span: Span, convention: Convention) -> tuple[int, int]:
    """(start, end) of a span as the convention writes it."""
    if convention.utf16 and is_astral(text):
        start = span.start + sum(c > "\uffff" for c in text[: span.start])
        end = span.end + sum(c > "\uffff" for c in text[: span.end])
    else:
        start, end = span.start, span.end
    return start, end - convention.inclusive


def is_astral(text: str) -> bool:
    """Has it characters that take two UTF-16 units?"""
    return not text.isascii() and max(text) > "\uffff"


def to_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """UTF-16 offsets as character offsets; (-1, -1) when they do not lie in the text or cut a character in two."""
    if not is_astral(text):
        return start, end
    units = {unit: index for index, unit in enumerate(accumulate((1 + (c > "\uffff") for c in text), initial=0))}
    return units.get(start, -1), units.get(end, -1)


def whole(value: object) -> int | None:
    """A whole number from JSON: 3, 3.0 or "3"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and len(value) < 20 and value.strip().isdecimal():
        return int(value)
    return None


def label_name(value: object) -> str:
    """A label from JSON as text; empty when there is none."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int):
        return ""
    return str(value) if abs(value) < 10**18 else ""


def _slice(text: str, start: int, end: int, convention: Convention) -> str | None:
    end += convention.inclusive
    if convention.utf16:
        start, end = to_characters(text, start, end)
    return text[start:end] if 0 <= start < end <= len(text) else None


def _by_mention(text: str, start: int, end: int, mention: str, convention: Convention, tally: Tally) -> tuple[int, int]:
    """Where a mention stands whose offsets do not fit the file's convention: by another one, else where it is alone."""
    for other in _ALL:
        if other != convention and _slice(text, start, end, other) == mention:
            tally.note(_("spans converted one by one, since their offsets count otherwise than the file's others"))
            stop = end + other.inclusive
            return to_characters(text, start, stop) if other.utf16 else (start, stop)
    first = text.find(mention) if mention else -1
    if first >= 0 and text.find(mention, first + 1) < 0:
        tally.note(_("spans moved to the only place where their stored mention stands"))
        return first, first + len(mention)
    raise BadSpan(
        _(
            'the span [{start}, {end}] says "{mention}", but the text has "{found}" there',
            start=start,
            end=end,
            mention=mention[:40],
            found=(_slice(text, start, end, convention) or "")[:40],
        )
    )
