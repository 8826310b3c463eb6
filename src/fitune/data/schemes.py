"""Tag schemes: one tag a character (or word) <-> spans, both ways.

Positions are indices into the tag sequence, start included, end excluded; a reader whose tags belong to words maps
them to characters itself. Tags are ``O`` or a letter, a separator (``-`` or ``_``) and a label: ``B-PER.NAM``.

Two ways to decode tags that break their scheme:

* lenient (``strict=False``, for reading gold): as conlleval does, a stray inside tag opens an entity and an unclosed
  entity ends where its run of tags ends. Nothing is lost, and ``Decoded.invalid`` holds the positions.
* strict (for scoring): as seqeval's strict mode does, only well-formed entities count.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from fitune.values import Span

Scheme = Literal["BIO", "IOB1", "BMES", "BIOES", "BILOU", "BMEW"]

SCHEMES: tuple[Scheme, ...] = ("BIO", "IOB1", "BMES", "BIOES", "BILOU", "BMEW")
"""BIO is IOB2: every entity starts with B. IOB1: B only where an entity follows one of the same label."""

# The letters a scheme writes for begin, inside, end and single; "" where the scheme has no such letter.
_LETTERS: dict[Scheme, tuple[str, str, str, str]] = {
    "BIO": ("B", "I", "", ""),
    "IOB1": ("B", "I", "", ""),
    "BMES": ("B", "M", "E", "S"),
    "BIOES": ("B", "I", "E", "S"),
    "BILOU": ("B", "I", "L", "U"),
    "BMEW": ("B", "M", "E", "W"),
}
_ROLE = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "W": "S"}


class Tag(NamedTuple):
    """A tag taken apart; ``role`` is B, I, E, S or O whatever letters the scheme uses."""

    role: str
    label: str


OUTSIDE = Tag("O", "")


class Decoded(NamedTuple):
    """Spans of a tag sequence, and the positions whose tag may not follow the one before it.

    A position equal to the length of the sequence says that the last entity was not closed.
    """

    spans: tuple[Span, ...]
    invalid: tuple[int, ...]


@dataclass(frozen=True)
class Detected:
    """What ``detect_scheme`` found."""

    scheme: Scheme
    separator: str
    """``-`` or ``_``."""
    invalid: int
    """Transitions that break the scheme, in all sequences."""
    transitions: int
    """Transitions looked at, those from and to the edges of a sequence included."""


@lru_cache(maxsize=65536)
def parse_tag(tag: str) -> Tag | None:
    """The tag taken apart, or None when it is no tag of any scheme. The label is what follows the first separator."""
    if tag in ("O", "o"):
        return OUTSIDE
    if len(tag) > 2 and tag[1] in "-_" and (role := _ROLE.get(tag[0].upper())):
        return Tag(role, tag[2:])
    return None


def _parse(tags: Sequence[str]) -> list[Tag]:
    parsed = [parse_tag(tag) for tag in tags]
    for position, tag in enumerate(parsed):
        if tag is None:
            raise ValueError(f"tag {tags[position]!r} at position {position} is neither O nor letter-label")
    return parsed  # pyright: ignore[reportReturnType]


def allowed(before: Tag, after: Tag, scheme: Scheme) -> bool:
    """May ``after`` follow ``before``? ``OUTSIDE`` stands for both edges of a sequence."""
    same = before.label == after.label
    if scheme == "BIO":
        return after.role in "OB" or (after.role == "I" and before.role in "BI" and same)
    if scheme == "IOB1":
        return after.role in "OI" or (after.role == "B" and before.role in "BI" and same)
    if before.role in "BI":
        return after.role in "IE" and same
    return after.role in "OBS"


def invalid_transitions(tags: Sequence[str], scheme: Scheme) -> tuple[int, ...]:
    """Positions whose tag may not follow the one before it; ``len(tags)``: the sequence ends inside an entity."""
    return _invalid(_parse(tags), scheme)


def _invalid(tags: list[Tag], scheme: Scheme) -> tuple[int, ...]:
    found: list[int] = []
    before = OUTSIDE
    for position, after in enumerate([*tags, OUTSIDE]):
        # Outside after outside is most of any file.
        if (before is not OUTSIDE or after is not OUTSIDE) and not allowed(before, after, scheme):
            found.append(position)
        before = after
    return tuple(found)


def decode_tags(tags: Sequence[str], scheme: Scheme, *, strict: bool = False) -> Decoded:
    """Spans of ``tags`` in order, with the invalid positions. Raises ValueError on what is no tag at all."""
    parsed = _parse(tags)
    invalid = _invalid(parsed, scheme)
    if not strict or not invalid or scheme == "IOB1":
        # On well-formed tags both ways agree; in IOB1 every sequence has one reading only.
        return Decoded(_lenient(parsed), invalid)
    return Decoded(_strict(parsed, ends=scheme != "BIO"), invalid)


def tags_to_spans(tags: Sequence[str], scheme: Scheme, *, strict: bool = False) -> tuple[Span, ...]:
    """Spans of ``tags`` in order; see ``decode_tags``."""
    return decode_tags(tags, scheme, strict=strict).spans


def _lenient(tags: list[Tag]) -> tuple[Span, ...]:
    """conlleval's rule (its start_of_chunk and end_of_chunk), for the letters of all schemes."""
    spans: list[Span] = []
    start = -1
    before = OUTSIDE
    for position, tag in enumerate(tags):
        joins = before.role in "BI" and tag.role in "IE" and tag.label == before.label
        if start >= 0 and not joins:
            spans.append(Span(start, position, before.label))
            start = -1
        if tag.role != "O" and not joins:
            start = position
        before = tag
    if start >= 0:
        spans.append(Span(start, len(tags), before.label))
    return tuple(spans)


def _strict(tags: list[Tag], *, ends: bool) -> tuple[Span, ...]:
    """seqeval's strict rule: B I* (and E where the scheme has ends) of one label, or S."""
    spans: list[Span] = []
    position = 0
    while position < len(tags):
        role, label = tags[position]
        start, position = position, position + 1
        if role == "S" and ends:
            spans.append(Span(start, position, label))
        elif role == "B":
            while position < len(tags) and tags[position] == ("I", label):
                position += 1
            if not ends:
                spans.append(Span(start, position, label))
            elif position < len(tags) and tags[position] == ("E", label):
                position += 1
                spans.append(Span(start, position, label))
    return tuple(spans)


def spans_to_tags(spans: Iterable[Span], length: int, scheme: Scheme, *, separator: str = "-") -> list[str]:
    """One tag a position. Raises ValueError when spans overlap (``flatten`` first) or end after ``length``."""
    begin, inside, end, single = _LETTERS[scheme]
    tags = ["O"] * length
    last_end, last_label = -1, ""
    for span in sorted(spans, key=lambda s: s.start):
        if span.start < last_end:
            raise ValueError(f"span [{span.start}, {span.end}) {span.label} overlaps the one before it")
        if span.end > length:
            raise ValueError(f"span [{span.start}, {span.end}) {span.label} ends after position {length}")
        letters = [inside] * (span.end - span.start)
        if scheme != "IOB1" or (span.start == last_end and span.label == last_label):
            letters[0] = begin
        if end:
            letters[-1] = end
            if len(letters) == 1:
                letters[0] = single
        tags[span.start : span.end] = [f"{letter}{separator}{span.label}" for letter in letters]
        last_end, last_label = span.end, span.label
    return tags


def flatten(spans: Iterable[Span]) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """(kept, dropped): spans that do not overlap, in order of their start, and those that had to go.

    The longer span wins (so the outer one of a nesting); of two equally long ones the one that starts first, then the
    one that comes first in ``spans``. A span that stands there twice is kept once and not counted as dropped.
    """
    unique = list(dict.fromkeys(spans))
    by_start = sorted(unique, key=lambda s: (s.start, s.end))
    if all(a.end <= b.start for a, b in itertools.pairwise(by_start)):
        return tuple(by_start), ()
    kept: list[Span] = []
    dropped: list[Span] = []
    for span in sorted(unique, key=lambda s: (s.start - s.end, s.start)):
        clash = any(span.start < other.end and other.start < span.end for other in kept)
        (dropped if clash else kept).append(span)
    return tuple(sorted(kept, key=lambda s: s.start)), tuple(sorted(dropped, key=lambda s: s.start))


def detect_scheme(sequences: Iterable[Sequence[str]]) -> Detected | None:
    """The scheme that the sequences break least; None when something in them is no tag, or there is no entity at all.

    The letters decide first (M with E or S: BMES; M with W: BMEW; L or U: BILOU; E or S: BIOES), the count of invalid
    transitions decides between BIO and IOB1; a tie is BIO.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    for tags in sequences:
        pairs.update(zip(["O", *tags], [*tags, "O"], strict=True))
    separators: Counter[str] = Counter()
    letters: set[str] = set()
    for (_before, tag), count in pairs.items():
        parsed = parse_tag(tag)
        if parsed is None:
            return None
        if parsed is not OUTSIDE:
            separators[tag[1]] += count
            letters.add(tag[0].upper())
    if not letters:
        return None
    if letters & {"E", "S", "L", "U", "W", "M"}:
        if letters & {"L", "U"}:
            scheme: Scheme = "BILOU"
        elif "W" in letters:
            scheme = "BMEW"
        else:
            scheme = "BIOES" if "I" in letters or "M" not in letters else "BMES"
        candidates: tuple[Scheme, ...] = (scheme,)
    else:
        candidates = ("BIO", "IOB1")
    parsed_pairs = [(parse_tag(a) or OUTSIDE, parse_tag(b) or OUTSIDE, n) for (a, b), n in pairs.items()]
    broken = {s: sum(n for a, b, n in parsed_pairs if not allowed(a, b, s)) for s in candidates}
    best = min(candidates, key=lambda s: broken[s])
    return Detected(best, separators.most_common(1)[0][0], broken[best], pairs.total())
