"""Windows: what the model sees of each example; ``split`` and its inverse ``merge`` stand here together.

A text longer than the window is split with overlap, never truncated. One rule says which window answers for a piece
of text (a token, a gold entity, a predicted entity): the one in which the piece lies farthest from a cut edge; of two
equally good ones the earlier. The beginning and the end of the text are no cut edges. So training labels every token
once, and ``merge`` takes every entity from one window.

T: tokens of all windows, special ones included. W: windows. N: examples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fitune.data.alignment import Aligned, align, ranges
from fitune.data.cuts import Pieces, paired_pieces, single_pieces
from fitune.data.encoder import Bools, Encoded, Encoder, Ints, Longs
from fitune.messages import _
from fitune.values import Example, Refusal, Span

SPECIAL = -1
"""``starts`` and ``ends`` of special tokens."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Columns over all windows; windows stand in the order of their examples, those of one example side by side."""

    ids: Ints
    """[T] model input, special tokens included, no padding."""
    starts: Ints
    """[T] first character in the original text (of the pair, where segment is 1); SPECIAL for special tokens."""
    ends: Ints
    """[T] one past the last character; SPECIAL for special tokens."""
    segments: np.ndarray[tuple[int], np.dtype[np.int8]]
    """[T] 1 for the second text of a pair and the special tokens after it, else 0. Feed them to the model as token
    types when ``encoder.uses_segments``."""
    owned: Bools
    """[T] does this window answer for the token? False for special tokens; True once for every token of a text."""
    bounds: Longs
    """[W + 1] the tokens of window w are ``bounds[w]:bounds[w + 1]``."""
    example: Ints
    """[W] index of the example."""
    char_starts: Ints
    """[W] first character of the first text that is inside the window."""
    char_ends: Ints
    """[W] one past the last one."""
    example_bounds: Longs
    """[N + 1] the windows of example i are ``example_bounds[i]:example_bounds[i + 1]``; every example has one."""
    dropped_example: Ints
    """[D] the example of every character that the tokenizer drops (whitespace, control characters ...)."""
    dropped_position: Ints
    """[D] its position in the text, or ``len(text)`` + its position in the pair."""

    def __len__(self) -> int:
        return len(self.example)

    @property
    def lengths(self) -> Ints:
        """[W] tokens, special ones included."""
        return np.diff(self.bounds).astype(np.int32)

    def margin(self, window: int, start: int, end: int) -> int:
        """Characters between [start, end) and the nearest cut edge of the window; very large where there is none."""
        example = self.example[window]
        left = right = 1 << 30
        if window > self.example_bounds[example]:
            left = start - int(self.char_starts[window])
        if window + 1 < self.example_bounds[example + 1]:
            right = int(self.char_ends[window]) - end
        return min(left, right)

    def owner(self, example: int, start: int, end: int) -> int:
        """The window that answers for characters [start, end) of the example's first text."""
        first, last = int(self.example_bounds[example]), int(self.example_bounds[example + 1])
        if last - first == 1:
            return first
        # Window k beats k + 1 while its right edge is at least as far from the end as the left edge of k + 1 is from
        # the start: char_ends[k] - end >= start - char_starts[k + 1].
        limits = self.char_starts[first + 1 : last] + self.char_ends[first : last - 1]
        return first + int(np.searchsorted(limits, start + end, side="left"))


def split(
    examples: Sequence[Example], encoder: Encoder, *, max_length: int | None = None, overlap: int | None = None
) -> Windows:
    """Windows of at most ``max_length`` tokens (special ones included) that overlap by at least ``overlap`` tokens.

    ``max_length`` defaults to the encoder's, ``overlap`` to a quarter of what is left of it beside the special
    tokens. A window that has to be cut is cut at the end of a sentence where one lies within the last half overlap.

    Pairs: a pair that is too long keeps its shorter text (the first, when equal) whole in every window while that
    takes no more than half the room, and splits the other; two long texts are split side by side, half the room each.

    Raises Refusal when the encoder cannot take ``max_length`` tokens, or the overlap is more than half of the room.
    """
    limit = _limit(encoder, max_length)
    aligned = align([example.text for example in examples], encoder)
    pair_index = [i for i, example in enumerate(examples) if example.text_pair is not None]
    room = limit - len(encoder.prefix) - len(encoder.suffix)
    if not pair_index:
        return _assemble(examples, encoder, aligned, single_pieces(aligned.encoded, examples, room, overlap))
    pairs = align([examples[i].text_pair or "" for i in pair_index], encoder)
    pieces = paired_pieces(aligned.encoded, pairs.encoded, pair_index, examples, encoder, room, overlap)
    return _assemble(examples, encoder, aligned, pieces, pairs, pair_index)


def _limit(encoder: Encoder, max_length: int | None) -> int:
    limit = encoder.max_length if max_length is None else max_length
    specials = len(encoder.prefix) + len(encoder.middle) + len(encoder.suffix)
    if limit > encoder.max_length:
        raise Refusal(
            _("max_length {wanted}, but the model takes {most} tokens at most", wanted=limit, most=encoder.max_length),
            where="max_length",
            next_step=_("Longer texts are split into windows, so a smaller max_length loses nothing."),
            code="FT202",
        )
    if limit < specials + 4:
        raise Refusal(
            _("max_length {wanted} leaves no room beside {specials} special tokens", wanted=limit, specials=specials),
            where="max_length",
            next_step=_("Choose at least {least}.", least=specials + 4),
            code="FT202",
        )
    return limit


def _assemble(
    examples: Sequence[Example],
    encoder: Encoder,
    aligned: Aligned,
    pieces: Pieces,
    pairs: Aligned | None = None,
    pair_index: Sequence[int] = (),
) -> Windows:
    """Lay prefix, pieces, middle and suffix out in columns."""
    first, second = aligned.encoded, None if pairs is None else pairs.encoded
    count, pair_count = pieces.last - pieces.first, pieces.pair_last - pieces.pair_first
    is_pair = np.zeros(len(examples), np.bool_)
    is_pair[list(pair_index)] = True
    middle = np.where(is_pair[pieces.example], len(encoder.middle), 0)
    sizes = len(encoder.prefix) + count + middle + pair_count + len(encoder.suffix)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    total = int(bounds[-1])
    ids, owned = np.zeros(total, np.int32), np.zeros(total, np.bool_)
    starts, ends = np.full(total, SPECIAL, np.int32), np.full(total, SPECIAL, np.int32)
    segments = np.zeros(total, np.int8)
    begin = bounds[:-1]
    body = begin + len(encoder.prefix)
    for offset, special in enumerate(encoder.prefix):
        ids[begin + offset] = special
    for offset, special in enumerate(encoder.suffix):
        ids[bounds[1:] - len(encoder.suffix) + offset] = special
    target, source = ranges(body, count), ranges(pieces.first, count)
    ids[target], starts[target], ends[target] = first.ids[source], first.starts[source], first.ends[source]
    owned[target] = True
    if second is not None:
        paired = np.flatnonzero(is_pair[pieces.example])
        for offset, special in enumerate(encoder.middle):
            ids[(body + count)[paired] + offset] = special
        behind = (body + count + middle)[paired]
        target, source = ranges(behind, pair_count[paired]), ranges(pieces.pair_first[paired], pair_count[paired])
        ids[target], starts[target], ends[target] = second.ids[source], second.starts[source], second.ends[source]
        owned[target] = True
        segments[ranges(behind, bounds[1:][paired] - behind)] = 1
    char_starts, char_ends = np.zeros(len(sizes), np.int32), np.zeros(len(sizes), np.int32)
    full = np.flatnonzero(count)
    char_starts[full], char_ends[full] = first.starts[pieces.first[full]], first.ends[pieces.last[full] - 1]
    dropped_example, dropped_position = _dropped(examples, aligned, pairs, pair_index)
    windows_per_example = np.bincount(pieces.example, minlength=len(examples))
    windows = Windows(
        ids,
        starts,
        ends,
        segments,
        owned,
        bounds,
        pieces.example.astype(np.int32),
        char_starts,
        char_ends,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(windows_per_example)]),
        dropped_example,
        dropped_position,
    )
    _own(windows, pieces, first, body, is_pair)
    return windows


def _dropped(
    examples: Sequence[Example], aligned: Aligned, pairs: Aligned | None, pair_index: Sequence[int]
) -> tuple[Ints, Ints]:
    """Example and position of every dropped character; those of a pair are counted on behind its first text."""
    if pairs is None:
        return aligned.dropped_text, aligned.dropped_position
    of_pair = np.array(pair_index, np.int32)[pairs.dropped_text]
    behind_text = np.array([len(examples[i].text) for i in of_pair.tolist()], np.int32)
    return (
        np.concatenate([aligned.dropped_text, of_pair]),
        np.concatenate([aligned.dropped_position, pairs.dropped_position + behind_text]),
    )


def _own(windows: Windows, pieces: Pieces, encoded: Encoded, body: Longs, is_pair: Bools) -> None:
    """Where windows overlap, leave each token to the one that answers for it. Pairs have no entities: theirs stay."""
    for example in np.flatnonzero(np.diff(windows.example_bounds) > 1).tolist():
        if is_pair[example]:
            continue
        w, past = int(windows.example_bounds[example]), int(windows.example_bounds[example + 1])
        low, high = int(encoded.bounds[example]), int(encoded.bounds[example + 1])
        limits = windows.char_starts[w + 1 : past] + windows.char_ends[w : past - 1]
        owner = np.searchsorted(limits, encoded.starts[low:high] + encoded.ends[low:high], side="left")
        # A token without characters may stand on the limit itself: only a window that holds it can answer for it.
        tokens = np.arange(low, high)
        owner = np.maximum(owner, np.searchsorted(pieces.last[w:past], tokens, side="right"))
        owner = np.minimum(owner, np.searchsorted(pieces.first[w:past], tokens, side="right") - 1)
        for k in range(past - w):
            a, b = int(pieces.first[w + k]), int(pieces.last[w + k])
            at = int(body[w + k])
            windows.owned[at : at + b - a] = owner[a - low : b - low] == k


def merge(windows: Windows, spans: Sequence[Sequence[Span]]) -> list[tuple[Span, ...]]:
    """Spans found in each window -> spans of each example, in the order of their start; the inverse of ``split``.

    ``spans[w]``: characters of the example's text. A span counts when its window is the one that answers for those
    characters (see above). An entity longer than the overlap may be whole in no window: its parts, which reach the
    cut edges of their windows and overlap, are joined (the longest part gives the score). Of overlapping spans from
    different windows the one farther from its window's edges is kept, then the one with the higher score, then the
    one from the earlier window.

    Raises ValueError when there is not one list of spans for each window.
    """
    if len(spans) != len(windows):
        raise ValueError(f"{len(spans)} lists of spans for {len(windows)} windows")
    merged: list[tuple[Span, ...]] = []
    for example, (first, last) in enumerate(pairwise(windows.example_bounds.tolist())):
        found = spans[first] if last - first == 1 else _merged(windows, example, spans[first:last])
        merged.append(tuple(sorted(found, key=lambda s: (s.start, s.end))))
    return merged


def _merged(windows: Windows, example: int, spans: Sequence[Sequence[Span]]) -> list[Span]:
    first = int(windows.example_bounds[example])
    found: list[tuple[int, int, Span]] = []  # margin in characters, window, span
    parts: list[Span] = []
    for w, of_window in enumerate(spans, first):
        for span in of_window:
            margin = windows.margin(w, span.start, span.end)
            if margin <= 0:
                parts.append(span)
            elif windows.owner(example, span.start, span.end) == w:
                found.append((margin, w, span))
    for number, span in enumerate(_joined(parts), 1):
        # Where a window holds the whole piece with something around it, that window has answered.
        owner = windows.owner(example, span.start, span.end)
        if windows.margin(owner, span.start, span.end) <= 0:
            found.append((0, -number, span))  # of no one window: it gives way to whatever it overlaps
    kept: list[tuple[int, Span]] = []
    for _margin, w, span in sorted(found, key=lambda f: (-f[0], -(f[2].score or 0.0), f[1])):
        if not any(w != v and span.start < other.end and other.start < span.end for v, other in kept):
            kept.append((w, span))
    return [span for _w, span in kept]


def _joined(parts: Sequence[Span]) -> list[Span]:
    """Parts of one label that overlap, as one."""
    joined: list[Span] = []
    longest = 0
    for part in sorted(parts, key=lambda s: (s.label, s.start, s.end)):
        size = part.end - part.start
        if joined and joined[-1].label == part.label and part.start < joined[-1].end:
            before = joined[-1]
            score = part.score if size > longest else before.score
            joined[-1] = Span(before.start, max(before.end, part.end), part.label, score)
            longest = max(longest, size)
        else:
            joined.append(part)
            longest = size
    return joined
