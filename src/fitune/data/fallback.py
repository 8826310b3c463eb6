"""Offsets for tokenizers that have none (Python-based ones), and the self-check that every tokenizer has to pass."""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fitune.data.alignment import align
from fitune.data.encoder import Encoded, Encoder, spell_piece
from fitune.messages import _
from fitune.values import Refusal

_LOOK_AHEAD = 32
_PROBES = (
    "今天天气很好，我们去喝茶。",
    "北京 Beijing 2024年3月1日，iPhone 发布会",
    "价格：3.14 元（含税）！",
    "你好😀世界，再见",
    "ＡＢＣ　全角１２３",
    "  two  spaces, café  ",
)


def fold(text: str) -> str:
    """NFKC, lower case, no accents: what is left of the differences between a text and its tokens."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).lower())
    return "".join(c for c in plain if unicodedata.category(c)[0] != "M")


def locate_pieces(text: str, pieces: Sequence[str | None]) -> list[tuple[int, int]]:
    """Offsets of ``pieces`` in ``text`` by folding both and matching from left to right.

    None is an unknown piece: it takes one Han character or symbol, else the rest of a word. A piece that is found
    nowhere near gets an empty range, which ``probe`` reports.
    """
    folded: list[str] = []
    origin: list[int] = []
    for position, character in enumerate(text):
        for part in fold(character):
            folded.append(part)
            origin.append(position)
    line = "".join(folded)
    offsets: list[tuple[int, int]] = []
    at = 0
    for piece in pieces:
        while at < len(line) and _is_blank(line[at]):
            at += 1
        if piece is None:
            end = _unknown_end(line, at)
        else:
            wanted = fold(piece).strip()
            found = line.find(wanted, at, at + _LOOK_AHEAD + len(wanted)) if wanted else -1
            if found < 0:
                here = origin[at] if at < len(origin) else len(text)
                offsets.append((here, here))
                continue
            at, end = found, found + len(wanted)
        if at >= end:
            offsets.append((len(text), len(text)))
            continue
        offsets.append((origin[at], origin[end - 1] + 1))
        at = end
    return offsets


def _is_blank(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in ("Cc", "Cf")


def _is_word(character: str) -> bool:
    if "\u3400" <= character <= "\u9fff" or "\U00020000" <= character <= "\U0003ffff" or "豈" <= character <= "\ufaff":
        return False
    return not (character.isspace() or unicodedata.category(character)[0] in "PC")


def _unknown_end(line: str, at: int) -> int:
    end = at
    while end < len(line) and _is_word(line[end]):
        end += 1
    return max(end, min(at + 1, len(line)))


@dataclass(frozen=True, eq=False)
class SlowEncoder:
    """An Encoder around a tokenizer without offsets: ``tokenize`` a text, look the pieces up, find them again."""

    tokenize: Callable[[str], Sequence[str]]
    to_ids: Callable[[Sequence[str]], Sequence[int]]
    to_pieces: Callable[[Sequence[int]], Sequence[str]]
    prefix: tuple[int, ...]
    middle: tuple[int, ...]
    suffix: tuple[int, ...]
    pad_id: int
    unk_id: int | None
    max_length: int = 512
    uses_segments: bool = True

    def encode(self, texts: Sequence[str]) -> Encoded:
        # An unknown piece may be given as the text itself or as "[UNK]"; only the first can be looked for.
        marks = set(self.to_pieces([self.unk_id])) if self.unk_id is not None else set[str]()
        ids: list[Sequence[int]] = []
        offsets: list[list[tuple[int, int]]] = []
        for text in texts:
            pieces = list(self.tokenize(text))
            row = list(self.to_ids(pieces))
            ids.append(row)
            offsets.append(locate_pieces(text, [None if piece in marks else spell_piece(piece) for piece in pieces]))
        return Encoded.from_lists(ids, offsets)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [spell_piece(piece) for piece in self.to_pieces(list(ids))]


def probe(encoder: Encoder, *, name: str = "") -> None:
    """Check that ``text[start:end]`` spells the token, for a set of texts with what usually goes wrong.

    Raises Refusal (FT203) naming the first token that does not; a model trained on such offsets learns shifted labels.
    """
    encoded = align(_PROBES, encoder, refine=False).encoded
    spelled = encoder.pieces(encoded.ids.tolist())
    rows = np.repeat(np.arange(len(encoded)), np.diff(encoded.bounds))
    for token, piece in enumerate(spelled):
        text = _PROBES[int(rows[token])]
        start, end = int(encoded.starts[token]), int(encoded.ends[token])
        if int(encoded.ids[token]) == encoder.unk_id or not fold(piece).strip():
            continue
        wanted, found = fold(piece).strip(), fold(text[start:end]).strip()
        if found == wanted or (end - start == 1 and wanted in found):
            continue
        raise Refusal(
            _(
                "the offsets of tokenizer {name} do not reproduce its tokens: {piece!r} is said to be {found!r}"
                " (characters {start} to {end} of {text!r})",
                name=name or type(encoder).__name__,
                piece=piece,
                found=text[start:end],
                start=start,
                end=end,
                text=text,
            ),
            next_step=_("Use the fast version of this tokenizer, or another model."),
            code="FT203",
        )
