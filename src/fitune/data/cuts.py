"""Where texts are cut: ranges of tokens that fit into a window. ``windows`` lays them out and puts them together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fitune.data.encoder import Encoded, Encoder, Longs
from fitune.messages import _
from fitune.values import Example, Refusal

_SENTENCE_ENDS = "。！？!?；;\n…"


def _overlap(room: int, overlap: int | None) -> int:
    if overlap is None:
        return room // 4
    if not 0 <= overlap <= room // 2:
        raise Refusal(
            _("overlap {wanted} is not between 0 and half the window ({most})", wanted=overlap, most=room // 2),
            where="overlap",
            next_step=_("Choose at most {most}.", most=room // 2),
            code="FT202",
        )
    return overlap


@dataclass(frozen=True)
class Pieces:
    """[W] rows: tokens [first, last) of the first text's columns, and [pair_first, pair_last) of the second's."""

    example: Longs
    first: Longs
    last: Longs
    pair_first: Longs
    pair_last: Longs


def single_pieces(encoded: Encoded, examples: Sequence[Example], room: int, overlap: int | None) -> Pieces:
    """One piece an example, and several for the long ones."""
    shared = _overlap(room, overlap)
    counts = np.diff(encoded.bounds)
    many = np.ones(len(examples), np.int64)
    cut: list[tuple[int, list[tuple[int, int]]]] = []
    for index in np.flatnonzero(counts > room).tolist():
        ranges = _cut(encoded, index, examples[index].text, room, shared)
        many[index] = len(ranges)
        cut.append((index, ranges))
    example = np.repeat(np.arange(len(examples)), many)
    first, last = encoded.bounds[:-1][example], encoded.bounds[1:][example]
    begins = np.cumsum(many) - many
    for index, ranges in cut:
        rows = slice(int(begins[index]), int(begins[index] + many[index]))
        first[rows], last[rows] = np.array(ranges, np.int64).T
    zeros = np.zeros(len(example), np.int64)
    return Pieces(example, first, last, zeros, zeros)


def _cut(encoded: Encoded, index: int, text: str, room: int, overlap: int) -> list[tuple[int, int]]:
    """Ranges of at most ``room`` tokens over one text (indices into the flat columns), each overlapping the next."""
    first, last = int(encoded.bounds[index]), int(encoded.bounds[index + 1])
    if last - first <= room:
        return [(first, last)]
    ranges: list[tuple[int, int]] = []
    start = first
    while start + room < last:
        end = _whole_character(encoded, _sentence_end(encoded, text, start + room, overlap // 2), start)
        ranges.append((start, end))
        start = max(_whole_character(encoded, end - overlap, start), start + 1)
    ranges.append((start, last))
    return ranges


def _sentence_end(encoded: Encoded, text: str, end: int, slack: int) -> int:
    """The latest cut in (end - slack, end] that stands behind a sentence's end; ``end`` when there is none."""
    if slack <= 0:
        return end
    left, right = int(encoded.starts[end - slack]), int(encoded.ends[end - 1])
    found = max(text.rfind(mark, left, right) for mark in _SENTENCE_ENDS)
    if found < 0:
        return end
    cut = end - slack + int(np.searchsorted(encoded.starts[end - slack : end], found, side="right"))
    return min(cut, end)


def _whole_character(encoded: Encoded, cut: int, start: int) -> int:
    """The cut moved back to where no character has tokens on both sides (byte-level tokenizers split characters)."""
    moved = cut
    while moved > start + 1 and encoded.starts[moved] < encoded.ends[moved - 1]:
        moved -= 1
    return moved if moved > start + 1 else cut


def paired_pieces(
    encoded: Encoded,
    paired: Encoded,
    pair_index: list[int],
    examples: Sequence[Example],
    encoder: Encoder,
    room: int,
    overlap: int | None,
) -> Pieces:
    """Pairs in a loop: there is one example at a time to decide on."""
    _overlap(room, overlap)
    number_of = {example: number for number, example in enumerate(pair_index)}
    rows: list[tuple[int, int, int, int, int]] = []

    def ranges(columns: Encoded, index: int, text: str, room: int) -> list[tuple[int, int]]:
        return _cut(columns, index, text, room, room // 4 if overlap is None else min(overlap, room // 2))

    for index, example in enumerate(examples):
        number = number_of.get(index)
        if number is None:
            rows.extend((index, a, b, 0, 0) for a, b in ranges(encoded, index, example.text, room))
            continue
        lengths = (
            int(encoded.bounds[index + 1] - encoded.bounds[index]),
            int(paired.bounds[number + 1] - paired.bounds[number]),
        )
        first_room, second_room = share_room(*lengths, room - len(encoder.middle))
        firsts = ranges(encoded, index, example.text, first_room)
        seconds = ranges(paired, number, example.text_pair or "", second_room)
        for k in range(max(len(firsts), len(seconds))):
            rows.append((index, *firsts[k % len(firsts)], *seconds[k % len(seconds)]))
    table = np.array(rows, np.int64).reshape(-1, 5)
    return Pieces(table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4])


def share_room(first: int, second: int, room: int) -> tuple[int, int]:
    """Tokens that each text of a pair gets of the room."""
    half = room // 2
    if first + second <= room:
        return first, second
    if first <= min(second, half):
        return first, room - first
    if second < first and second <= half:
        return room - second, second
    return half, room - half
