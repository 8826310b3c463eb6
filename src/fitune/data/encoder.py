"""What windows ask of a tokenizer (Encoder), what it answers (Encoded), and an Encoder around any fast tokenizer.

Offsets are characters (code points) of the ORIGINAL text, end excluded, whatever the tokenizer lower-cased, mapped or
dropped on the way. T: tokens of all texts together. N: texts.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Tokens of N texts in columns, special tokens not included."""

    ids: Ints
    """[T] vocabulary ids."""
    starts: Ints
    """[T] first character of each token in its own text."""
    ends: Ints
    """[T] one past the last character; equal to the start for a token that stands for no character."""
    bounds: Longs
    """[N + 1] the tokens of text i are ``bounds[i]:bounds[i + 1]``."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @classmethod
    def from_lists(cls, ids: Sequence[Sequence[int]], offsets: Iterable[Sequence[tuple[int, int]]]) -> "Encoded":
        """Columns from one list of ids and one of (start, end) a text. Raises ValueError when their lengths differ."""
        bounds = np.zeros(len(ids) + 1, np.int64)
        np.cumsum([len(row) for row in ids], out=bounds[1:])
        total = int(bounds[-1])
        flat = np.fromiter(chain.from_iterable(ids), np.int32, total)
        pairs = np.fromiter(chain.from_iterable(chain.from_iterable(offsets)), np.int32)
        if len(pairs) != 2 * total:
            raise ValueError(f"{total} token ids but {len(pairs) // 2} offsets")
        return cls(flat, np.ascontiguousarray(pairs[::2]), np.ascontiguousarray(pairs[1::2]), bounds)

    @classmethod
    def concatenate(cls, parts: Sequence["Encoded"]) -> "Encoded":
        """The texts of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        counts = [np.diff(part.bounds) for part in parts] or [np.zeros(0, np.int64)]
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts))])
        empty = [np.zeros(0, np.int32)]
        return cls(
            np.concatenate([p.ids for p in parts] or empty),
            np.concatenate([p.starts for p in parts] or empty),
            np.concatenate([p.ends for p in parts] or empty),
            bounds,
        )


class Encoder(Protocol):
    """A tokenizer as windows see it. A window is prefix + text + suffix, or prefix + text + middle + pair + suffix."""

    @property
    def prefix(self) -> tuple[int, ...]:
        """Special ids before the first text, such as ([CLS],)."""
        ...

    @property
    def middle(self) -> tuple[int, ...]:
        """Special ids between the two texts of a pair, such as ([SEP],) or (</s>, </s>)."""
        ...

    @property
    def suffix(self) -> tuple[int, ...]:
        """Special ids at the end, such as ([SEP],)."""
        ...

    @property
    def pad_id(self) -> int: ...

    @property
    def unk_id(self) -> int | None:
        """None: the vocabulary can spell everything."""
        ...

    @property
    def max_length(self) -> int:
        """Most tokens that the model takes, special ones included."""
        ...

    @property
    def uses_segments(self) -> bool:
        """Does the second text of a pair get token type 1?"""
        ...

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Ids and offsets of every text, without special tokens. Called with thousands of texts at once."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What each id spells, without continuation or word-start marks; "" where that cannot be said."""
        ...


_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class FastEncoder:
    """An Encoder around a ``tokenizers.Tokenizer`` (``backend_tokenizer`` of a fast Hugging Face tokenizer)."""

    backend: Any
    """Needs ``encode_batch(texts, add_special_tokens=False)`` with ``.ids`` and ``.offsets``, and ``id_to_token``."""
    prefix: tuple[int, ...]
    middle: tuple[int, ...]
    suffix: tuple[int, ...]
    pad_id: int
    unk_id: int | None
    max_length: int = 512
    uses_segments: bool = True
    translation: Mapping[int, str] | None = None
    """A same-length map applied before the tokenizer sees the text (see ``normalization``)."""
    spell: Callable[[str], str] | None = None
    """Token -> what it spells; None: strip WordPiece's ``##`` and SentencePiece's word mark."""

    def __post_init__(self) -> None:
        for source, target in (self.translation or {}).items():
            if len(target) != 1:
                raise ValueError(f"U+{source:04X} maps to {target!r}: offsets need maps of one character to one")

    def encode(self, texts: Sequence[str]) -> Encoded:
        ready = [self._ready(text) for text in texts]
        rows = self.backend.encode_batch(ready, add_special_tokens=False)
        return Encoded.from_lists([row.ids for row in rows], (row.offsets for row in rows))

    def _ready(self, text: str) -> str:
        if self.translation:
            text = text.translate(self.translation)
        # A lone surrogate cannot be UTF-8; U+FFFD is what stands for "unreadable", one character for one.
        return text if text.isascii() or not _SURROGATES.search(text) else _SURROGATES.sub("�", text)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        tokens = [self.backend.id_to_token(int(i)) or "" for i in ids]
        return [self.spell(token) if self.spell else spell_piece(token) for token in tokens]


def spell_piece(token: str) -> str:
    """A WordPiece or SentencePiece token without its mark."""
    if token.startswith("##") and len(token) > 2:
        return token[2:]
    return token.replace("▁", " ").strip() if "▁" in token else token
