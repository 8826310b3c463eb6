"""Tokens and characters: every character of a text is inside a token, or listed as dropped.

``align`` encodes texts in batches, repairs what tokenizers get wrong, and proves the result:

* offsets are checked (inside the text, in order) or the tokenizer is refused;
* whitespace at the edge of a token is taken off its offsets (SentencePiece puts the space before a word into it);
* a run of unlike characters that collapsed into one [UNK], such as an emoji run with a name behind it, is encoded
  again part by part, so that the labels of its characters stay apart (huggingface/tokenizers#404).
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fitune.data.encoder import Bools, Encoded, Encoder, Ints, Longs
from fitune.messages import _
from fitune.values import Refusal

_CHUNK_CHARACTERS = 1 << 20
_LONGEST_PART = 50
_SPACES = np.array([chr(point).isspace() for point in range(0x3001)])


@dataclass(frozen=True, eq=False)
class Aligned:
    """Encoded texts with the proof: ``characters = in a token + dropped``, for every text."""

    encoded: Encoded
    dropped_text: Ints
    """[D] index of the text that each dropped character stands in."""
    dropped_position: Ints
    """[D] its position there."""
    characters: int
    """Of all texts."""
    refined: int
    """[UNK] tokens that were taken apart."""


def align(texts: Sequence[str], encoder: Encoder, *, refine: bool = True) -> Aligned:
    """Encode ``texts`` and prove the offsets. Raises Refusal (FT201) when they cannot be right."""
    parts: list[Encoded] = []
    dropped: list[tuple[Ints, Ints]] = []
    refined = 0
    for first, last in _chunks(texts):
        chunk = texts[first:last]
        points, char_bounds = code_points(chunk)
        encoded = _checked(encoder.encode(chunk), chunk)
        encoded = _trimmed(encoded, points, char_bounds)
        if refine and encoder.unk_id is not None:
            encoded, count = _refined(encoded, chunk, encoder)
            refined += count
        row, position = _uncovered(encoded, char_bounds)
        dropped.append((row + np.int32(first), position))
        parts.append(encoded)
    none = np.zeros(0, np.int32)
    return Aligned(
        Encoded.concatenate(parts),
        np.concatenate([row for row, _p in dropped] or [none]),
        np.concatenate([position for _r, position in dropped] or [none]),
        sum(map(len, texts)),
        refined,
    )


def _chunks(texts: Sequence[str]) -> list[tuple[int, int]]:
    chunks: list[tuple[int, int]] = []
    first = size = 0
    for index, text in enumerate(texts):
        size += len(text) + 1
        if size >= _CHUNK_CHARACTERS:
            chunks.append((first, index + 1))
            first, size = index + 1, 0
    if first < len(texts):
        chunks.append((first, len(texts)))
    return chunks


def code_points(texts: Sequence[str]) -> tuple[NDArray[np.uint32], Longs]:
    """All characters as numbers, and where each text begins: [C], [N + 1]."""
    bounds = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=bounds[1:])
    return np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.dtype("<u4")), bounds


def _checked(encoded: Encoded, texts: Sequence[str]) -> Encoded:
    """Refuse offsets outside the text or out of order."""
    if len(encoded) != len(texts):
        raise Refusal(
            _("the tokenizer gave {found} rows for {wanted} texts", found=len(encoded), wanted=len(texts)), code="FT201"
        )
    lengths = np.repeat(np.array([len(text) for text in texts], np.int64), np.diff(encoded.bounds))
    wrong = (encoded.starts < 0) | (encoded.ends < encoded.starts) | (encoded.ends > lengths)
    backwards = np.zeros(len(encoded.ids), np.bool_)
    backwards[1:] = (encoded.starts[1:] < encoded.starts[:-1]) | (encoded.ends[1:] < encoded.ends[:-1])
    begins = encoded.bounds[:-1]
    backwards[begins[begins < len(backwards)]] = False
    bad = np.flatnonzero(wrong | backwards)
    if len(bad):
        token = int(bad[0])
        row = int(np.searchsorted(encoded.bounds, token, side="right")) - 1
        raise Refusal(
            _(
                "the tokenizer's offsets are wrong: token {token} covers characters {start} to {end} of {text!r}",
                token=token - int(encoded.bounds[row]),
                start=int(encoded.starts[token]),
                end=int(encoded.ends[token]),
                text=texts[row][:40],
            ),
            next_step=_("Use the fast version of this tokenizer, or another model."),
            code="FT201",
        )
    return encoded


def _trimmed(encoded: Encoded, points: NDArray[np.uint32], char_bounds: Longs) -> Encoded:
    """Offsets without whitespace at the edges; a token of nothing but whitespace keeps its own."""
    if not len(points):
        return encoded
    spaces = _SPACES[np.minimum(points, np.uint32(0x3000))] & (points <= 0x3000)
    if not spaces.any():
        return encoded
    base = np.repeat(char_bounds[:-1], np.diff(encoded.bounds))
    starts, ends = encoded.starts.astype(np.int64) + base, encoded.ends.astype(np.int64) + base
    last = len(points) - 1
    while (move := (ends - starts > 1) & spaces[np.minimum(starts, last)]).any():
        starts[move] += 1
    while (move := (ends - starts > 1) & spaces[np.maximum(ends - 1, 0)]).any():
        ends[move] -= 1
    return Encoded(encoded.ids, (starts - base).astype(np.int32), (ends - base).astype(np.int32), encoded.bounds)


def _uncovered(encoded: Encoded, char_bounds: Longs) -> tuple[Ints, Ints]:
    """(text, position) of every character that no token covers."""
    base = np.repeat(char_bounds[:-1], np.diff(encoded.bounds))
    covered = covered_characters(encoded.starts + base, encoded.ends + base, int(char_bounds[-1]))
    missing = np.flatnonzero(~covered)
    row = np.searchsorted(char_bounds, missing, side="right") - 1
    return row.astype(np.int32), (missing - char_bounds[row]).astype(np.int32)


def covered_characters(starts: Longs, ends: Longs, total: int) -> Bools:
    """[total] is the character inside a token? Starts and ends count through all texts, one after another."""
    depth = np.bincount(starts, minlength=total + 1) - np.bincount(ends, minlength=total + 1)
    return np.cumsum(depth[:total]) > 0


def _refined(encoded: Encoded, texts: Sequence[str], encoder: Encoder) -> tuple[Encoded, int]:
    """Take apart every [UNK] that covers characters of several kinds."""
    unknown = np.flatnonzero((encoded.ids == encoder.unk_id) & (encoded.ends - encoded.starts > 1))
    if not len(unknown):
        return encoded, 0
    rows = np.searchsorted(encoded.bounds, unknown, side="right") - 1
    split_tokens: list[int] = []
    parts_of: list[int] = []  # which of split_tokens a part belongs to
    parts: list[str] = []
    part_starts: list[int] = []
    for token, row in zip(unknown.tolist(), rows.tolist(), strict=True):
        start, end = int(encoded.starts[token]), int(encoded.ends[token])
        text: str = texts[int(row)]
        cuts = like_runs(text[start:end])
        if len(cuts) > 2:
            for a, b in pairwise(cuts):
                parts.append(text[start + a : start + b])
                part_starts.append(start + a)
                parts_of.append(len(split_tokens))
            split_tokens.append(token)
    if not split_tokens:
        return encoded, 0
    again = _checked(encoder.encode(parts), parts)
    per_part = np.diff(again.bounds)
    counts = np.ones(len(encoded.ids), np.int64)
    counts[split_tokens] = np.bincount(np.array(parts_of), per_part, len(split_tokens)).astype(np.int64)
    new_bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    columns = [np.repeat(column, counts) for column in (encoded.ids, encoded.starts, encoded.ends)]
    shift = np.repeat(np.array(part_starts, np.int32), per_part)
    firsts = np.array(split_tokens)
    where = ranges(new_bounds[firsts], counts[firsts])
    for column, fresh in zip(columns, (again.ids, again.starts + shift, again.ends + shift), strict=True):
        column[where] = fresh
    return Encoded(columns[0], columns[1], columns[2], new_bounds[encoded.bounds]), len(split_tokens)


def ranges(starts: Longs, counts: Longs) -> Longs:
    """starts[0], starts[0] + 1, ... (counts[0] of them), then those of starts[1] ..."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(before, counts) + np.repeat(starts, counts)


def like_runs(text: str) -> list[int]:
    """Cuts (0 and the length included) between characters of different kinds: script, digit, each symbol by itself.

    Combining marks, joiners, variation selectors and skin tones stay with the character before them.
    """
    cuts = [0]
    before = ""
    joined = False
    for position, character in enumerate(text):
        kind = _kind(character)
        stays = kind == "mark" or joined
        if position and not stays and (kind != before or kind == "symbol" or position - cuts[-1] >= _LONGEST_PART):
            cuts.append(position)
        if not stays or not position:
            before = kind
        joined = character == "\u200d"
    cuts.append(len(text))
    return cuts


def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return "mark"
    if category == "Nd":
        return "digit"
    if category[0] == "L":
        # The first word of the name is the script: LATIN, CYRILLIC, CJK, HIRAGANA ...
        name = unicodedata.name(character, "?").split(" ", 1)[0]
        return "LATIN" if name == "FULLWIDTH" else name
    return "symbol"


def drop_reason(character: str) -> str:
    """Why a tokenizer may drop a character: whitespace, control, mark (an accent that was stripped), or other."""
    if character.isspace():
        return "whitespace"
    category = unicodedata.category(character)
    if category[0] == "C" or character == "�":
        return "control"
    return "mark" if category[0] == "M" else "other"
