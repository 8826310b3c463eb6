"""Entities: nesting, overlaps, whitespace at the ends, repeats that were left unlabelled."""

from collections import Counter
from collections.abc import Iterator

from fitune.data.checking.kinds import Tally, clip, finding
from fitune.data.checking.texts import check_label_names, check_rare, file_of
from fitune.data.rows import Rows
from fitune.messages import _
from fitune.values import Example, Finding, Span

_SHORTEST_REPEAT = 2


def check_entities(split: str, rows: Rows, *, is_train: bool) -> list[Finding]:
    """All findings about the spans of one split."""
    tallies = {code: Tally() for code in ("FT104", "FT105", "FT108", "FT110")}
    counts: Counter[str] = Counter()
    for example in rows.examples:
        if not example.spans:
            continue
        counts.update(span.label for span in example.spans)
        for inner, span, other in clashes(example.spans):
            what = f"{_name(example, span)}, {_name(example, other)}"
            tallies["FT105" if inner else "FT104"].add(example, what)
        for span in example.spans:
            if example.text[span.start].isspace() or example.text[span.end - 1].isspace():
                tallies["FT110"].add(example, _name(example, span))
        repeats = list(unlabelled_repeats(example))
        if repeats:
            start, end, label = repeats[0]
            what = _("{mention} at {start}, labelled {label} elsewhere in the text", mention=example.text[start:end],
                     start=start, label=label)  # fmt: skip
            tallies["FT108"].add(example, what, number=len(repeats))
    file = file_of(rows)
    found = [finding(c, t.count, t.evidence, split=split, file=file) for c, t in tallies.items() if t.count]
    found.extend(check_label_names(split, rows, counts))
    if is_train and counts:
        found.extend(check_rare(split, counts))
    return found


def _name(example: Example, span: Span) -> str:
    return f"{span.label} [{span.start}, {span.end}) {clip(repr(example.text[span.start : span.end]), 16)}"


def clashes(spans: tuple[Span, ...]) -> Iterator[tuple[bool, Span, Span]]:
    """(lies inside?, span, the span before it that it clashes with), each clashing span once.

    Two labels on the same characters are an overlap, not a nesting.
    """
    widest: Span | None = None
    for span in sorted(set(spans), key=lambda s: (s.start, -s.end, s.label)):
        if widest is not None and span.start < widest.end:
            same = (span.start, span.end) == (widest.start, widest.end)
            yield span.end <= widest.end and not same, span, widest
        if widest is None or span.end > widest.end:
            widest = span


def unlabelled_repeats(example: Example) -> Iterator[tuple[int, int, str]]:
    """(start, end, label) of every further occurrence of a labelled mention that no entity touches.

    Mentions of one character are left out: most of their repeats are part of a word. An occurrence that is part of
    a longer run of Latin letters or digits is none.
    """
    spans = example.spans or ()
    text = example.text
    taken = bytearray(len(text))
    for span in spans:
        taken[span.start : span.end] = b"\1" * (span.end - span.start)
    # Longest first, so that a repeat of "北京大学" is not counted for "北京" again.
    mentions = {text[s.start : s.end]: s.label for s in spans if s.end - s.start >= _SHORTEST_REPEAT}
    for mention in sorted(mentions, key=lambda m: (-len(m), m)):
        at = text.find(mention)
        while at >= 0:
            end = at + len(mention)
            if not any(taken[at:end]) and not _inside_word(text, at, end):
                taken[at:end] = b"\1" * len(mention)
                yield at, end, mentions[mention]
            at = text.find(mention, at + 1)


def _inside_word(text: str, start: int, end: int) -> bool:
    def letter(position: int) -> bool:
        return 0 <= position < len(text) and text[position].isascii() and text[position].isalnum()

    return (letter(start - 1) and letter(start)) or (letter(end - 1) and letter(end))
