"""Labels live on characters and are projected to tokens once, here; ``characters`` goes back.

For every gold span: its window, its tokens, and how well tokens can express it. A span is EXACT when project and back
is the identity. T: tokens of all windows. S: spans of all examples, in order.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from fitune.data.encoder import Bools, Ints, Longs
from fitune.data.schemes import Scheme, spans_to_tags
from fitune.data.windows import SPECIAL, Windows
from fitune.values import Example, Span

IGNORED = -100
"""Class of a token that has no part in the loss, as everywhere in transformers."""
_JOINER = "\u200d"
_FIRST_MARK = "\u0300"
_FAR = 2**62
"""Behind the end of any text."""


class Expressed(IntEnum):
    """How well tokens can express a span."""

    EXACT = 0
    TRIMMED = 1
    """An end lies on characters that the tokenizer drops, such as a space: found again without them."""
    CUT = 2
    """An end lies inside a token: found again a little longer."""
    LOST = 3
    """No token is left for it: blank or dropped characters only, or its token belongs to another span."""


@dataclass(frozen=True, eq=False)
class Projected:
    """Where the gold spans lie in the windows."""

    example: Ints
    """[S] index of the example."""
    number: Ints
    """[S] index of the span among the example's spans."""
    window: Ints
    """[S] the window that answers for the span."""
    first: Longs
    """[S] its first token, an index into the columns of Windows."""
    last: Longs
    """[S] one past its last token; equal to ``first`` when LOST."""
    expressed: Ints
    """[S] values of Expressed."""
    whole: Bools
    """[S] does the window hold the whole span? False only where a span is longer than the overlap."""


def heads_of_words(windows: Windows, continues: Bools) -> Bools:
    """[T] is the token the first piece of a word? ``continues[id]``: the piece goes on with a word (``##ing``)."""
    heads = ~continues[windows.ids]
    heads[1:] |= windows.starts[1:] != windows.ends[:-1]
    heads[windows.bounds[:-1]] = True
    return heads | (windows.starts == SPECIAL)


def project(windows: Windows, examples: Sequence[Example], *, heads: Bools | None = None) -> Projected:
    """Find the tokens of every gold span. Spans must not overlap (``flatten`` first).

    A span takes every token that it shares a character with; a token shared by two spans goes to the earlier one.
    With ``heads`` (first-piece labelling) words take the place of tokens, and an end inside a word is CUT.
    """
    example, number, begin, end = _columns(examples)
    window = windows.example_bounds[example].astype(np.int64)
    several = np.flatnonzero(np.diff(windows.example_bounds)[example] > 1)
    for i in several.tolist():
        window[i] = windows.owner(int(example[i]), int(begin[i]), int(end[i]))
    # One axis for all windows: keys rise through the tokens, so one binary search finds every span.
    starts, ends, tokens = _units(windows, heads)
    of_token = np.searchsorted(windows.bounds, tokens, side="right") - 1
    axis = int(max(ends.max(initial=0), end.max(initial=0))) + 2
    first = np.searchsorted(of_token * axis + ends, window * axis + begin, side="right")
    past = np.searchsorted(of_token * axis + starts, window * axis + end, side="left")
    same = window[1:] == window[:-1]
    first[1:] = np.where(same, np.maximum(first[1:], past[:-1]), first[1:])
    blank, edges_blank = _blanks(examples, example, begin, end)
    lost = (first >= past) | blank
    a, b = np.minimum(first, len(tokens) - 1), np.maximum(past - 1, 0)
    expressed = np.full(len(example), int(Expressed.LOST), np.int32)
    if len(tokens):
        back_end = _extended(examples, example, ends[b], _next_starts(starts, of_token)[b])
        over = (starts[a] < begin) | (back_end > end)
        under = (starts[a] > begin) | (back_end < end) | edges_blank
        expressed = np.where(
            lost, Expressed.LOST, np.where(over, Expressed.CUT, np.where(under, Expressed.TRIMMED, Expressed.EXACT))
        )
    left, right = windows.char_starts[window], windows.char_ends[window]
    whole = (windows.example_bounds[example] == window) | (begin >= left)
    whole &= (windows.example_bounds[example + 1] == window + 1) | (end <= right)
    edges = np.append(tokens, windows.bounds[-1])
    return Projected(
        example.astype(np.int32),
        number.astype(np.int32),
        window.astype(np.int32),
        edges[np.minimum(first, len(tokens))],
        np.where(lost, edges[np.minimum(first, len(tokens))], edges[b] + 1),
        expressed.astype(np.int32),
        whole,
    )


def _columns(examples: Sequence[Example]) -> tuple[Longs, Longs, Longs, Longs]:
    """(example, number, start, end) of all spans, those of one example by their start."""
    rows = [
        (i, number, span.start, span.end)
        for i, example in enumerate(examples)
        for number, span in sorted(enumerate(example.spans or ()), key=lambda pair: pair[1].start)
    ]
    table = np.array(rows, np.int64).reshape(-1, 4)
    for i in np.flatnonzero((table[1:, 0] == table[:-1, 0]) & (table[1:, 2] < table[:-1, 3])).tolist():
        raise ValueError(f"example {rows[i][0]} has overlapping spans: flatten them first")
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]


def _units(windows: Windows, heads: Bools | None) -> tuple[Ints, Ints, Longs]:
    """(starts, ends, index of the token) of what is labelled: all tokens, or words by their first piece."""
    real = windows.starts != SPECIAL
    if heads is None:
        tokens = np.flatnonzero(real)
        return windows.starts[tokens], windows.ends[tokens], tokens
    tokens = np.flatnonzero(heads & real)
    ends = windows.ends[np.flatnonzero(real)]
    behind = np.searchsorted(np.flatnonzero(real), np.append(tokens[1:], len(real)), side="left")
    return windows.starts[tokens], ends[behind - 1] if len(tokens) else ends[:0], tokens


def _blanks(examples: Sequence[Example], example: Longs, begin: Longs, end: Longs) -> tuple[Bools, Bools]:
    """[S] is the span nothing but whitespace, and does it begin or end with some?"""
    nothing, some = np.zeros(len(example), np.bool_), np.zeros(len(example), np.bool_)
    for i, (row, a, b) in enumerate(zip(example.tolist(), begin.tolist(), end.tolist(), strict=True)):
        text = examples[row].text
        if text[a].isspace() or text[b - 1].isspace():
            some[i] = True
            nothing[i] = text[a:b].isspace()
    return nothing, some


def _next_starts(starts: Ints, of_token: Longs) -> Longs:
    """For each labelled token where the next one of its window begins; far away behind the last."""
    following = np.full(len(starts), _FAR, np.int64)
    same = of_token[1:] == of_token[:-1]
    following[:-1][same] = starts[1:][same]
    return following


def _extended(examples: Sequence[Example], example: Longs, found: Ints, limits: Longs) -> Longs:
    """Ends moved over marks that the tokenizer dropped, as ``characters`` does."""
    ends = found.astype(np.int64)
    for i, (row, end, limit) in enumerate(zip(example.tolist(), found.tolist(), limits.tolist(), strict=True)):
        text = examples[row].text
        if end < len(text) and text[end] >= _FIRST_MARK:
            ends[i] = _over_marks(text, end, limit)
    return ends


def _over_marks(text: str, end: int, limit: int) -> int:
    limit = min(limit, len(text))
    while end < limit and (unicodedata.category(text[end])[0] == "M" or text[end] == _JOINER):
        end += 1
    return end


def characters(windows: Windows, text: str, first: int, last: int) -> tuple[int, int] | None:
    """Tokens [first, last) of the columns -> characters [start, end) of ``text``; None when they stand for none.

    Combining marks behind the last token belong to its character even where the tokenizer drops them, up to the next
    token: a mark that is a token has a label of its own. Whitespace at the ends is taken off. ``text[start:end]`` is
    the entity, never a string put together from tokens.
    """
    start, end = int(windows.starts[first]), int(windows.ends[last - 1])
    if end < len(text) and text[end] >= _FIRST_MARK:
        past = int(windows.bounds[np.searchsorted(windows.bounds, last - 1, side="right")])
        follows = last < past and windows.starts[last] != SPECIAL
        end = _over_marks(text, end, int(windows.starts[last]) if follows else _FAR)
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def targets(
    windows: Windows,
    examples: Sequence[Example],
    tag_ids: Mapping[str, int],
    *,
    scheme: Scheme = "BIO",
    heads: Bools | None = None,
    projected: Projected | None = None,
) -> Ints:
    """[T] class of every token: IGNORED for special tokens, for tokens that another window answers for, for pieces
    behind the first when ``heads`` is given, and for examples without gold (``spans`` is None).

    An entity is labelled whole, in the window that answers for it, where that window holds it; the other windows then
    ignore its tokens. ``tag_ids``: ``O``, ``B-PER`` ... -> class. Raises KeyError for a label that it lacks.
    """
    spans = project(windows, examples, heads=heads) if projected is None else projected
    labelled = windows.owned.copy()
    unlabelled = np.array([example.spans is None for example in examples], np.bool_)
    if unlabelled.any():
        labelled &= ~np.repeat(unlabelled[windows.example], np.diff(windows.bounds))
    result = np.full(len(windows.ids), tag_ids["O"], np.int32)
    counts = np.diff(windows.example_bounds)
    units = np.ones(len(windows.ids), np.bool_) if heads is None else heads
    for i in range(len(spans.example)):
        example, first, last = int(spans.example[i]), int(spans.first[i]), int(spans.last[i])
        if first >= last:
            continue
        span = (examples[example].spans or ())[int(spans.number[i])]
        if spans.whole[i]:
            tokens = np.flatnonzero(units[first:last]) + first
            result[tokens] = [tag_ids[tag] for tag in _tags(len(tokens), span.label, scheme)]
        if counts[example] > 1:
            if spans.whole[i]:
                _elsewhere(windows, example, span, int(spans.window[i]), labelled)
            else:
                _in_parts(windows, example, span, result, units, tag_ids, scheme)
    result[~(labelled & units)] = IGNORED
    return result


def _tags(length: int, label: str, scheme: Scheme, *, begins: bool = True, ends: bool = True) -> list[str]:
    """Tags of an entity of ``length`` tokens, or of a part of one that begins before or ends after it."""
    whole = length + (not begins) + (not ends)
    tags = spans_to_tags([Span(0, whole, label)], whole, "BIO" if scheme == "IOB1" else scheme)
    return tags[not begins : whole - (not ends)]


def _inside(windows: Windows, w: int, span: Span) -> Longs:
    """The tokens of window w that share a character with the span."""
    at = slice(int(windows.bounds[w]), int(windows.bounds[w + 1]))
    inside = (windows.ends[at] > span.start) & (windows.starts[at] < span.end) & (windows.starts[at] != SPECIAL)
    return np.flatnonzero(inside) + at.start


def _elsewhere(windows: Windows, example: int, span: Span, owner: int, labelled: Bools) -> None:
    """A whole span is labelled in one window only, all of it."""
    for w in range(int(windows.example_bounds[example]), int(windows.example_bounds[example + 1])):
        labelled[_inside(windows, w, span)] = w == owner


def _in_parts(
    windows: Windows,
    example: int,
    span: Span,
    result: Ints,
    units: Bools,
    tag_ids: Mapping[str, int],
    scheme: Scheme,
) -> None:
    """A span that is whole in no window: each window labels the tokens that it answers for."""
    for w in range(int(windows.example_bounds[example]), int(windows.example_bounds[example + 1])):
        tokens = _inside(windows, w, span)
        tokens = tokens[units[tokens]]
        if len(tokens):
            begins, ends = int(windows.char_starts[w]) <= span.start, int(windows.char_ends[w]) >= span.end
            tags = _tags(len(tokens), span.label, scheme, begins=begins, ends=ends)
            result[tokens] = [tag_ids[tag] for tag in tags]
