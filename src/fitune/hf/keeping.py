"""Tokens kept on disk: what was tokenised once is read back as arrays, whatever run asks for it.

One file a chunk of texts, named by the hash of the texts and of all that the tokenizer does; a changed row, another
tokenizer or another version of it is another name. A file that cannot be read is made again.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fitune.data import Encoded, Encoder, FastEncoder
from fitune.hf.cache import cache_directory

WORTH_KEEPING = 50_000
"""Characters in a call from which reading its tokens back is faster than making them (opening a file costs too)."""

MOST_BYTES = 2**30
"""Of all files together; those that were not used for longest go first."""


class KeptEncoder:
    """An Encoder whose answers to large calls are kept.

    Args:
        inner: the tokenizer.
        identity: everything that its answers depend on.
    """

    def __init__(self, inner: Encoder, identity: str) -> None:
        self._inner, self._identity = inner, identity
        self._folder = cache_directory() / "tokens"

    @property
    def prefix(self) -> tuple[int, ...]:
        return self._inner.prefix

    @property
    def middle(self) -> tuple[int, ...]:
        return self._inner.middle

    @property
    def suffix(self) -> tuple[int, ...]:
        return self._inner.suffix

    @property
    def pad_id(self) -> int:
        return self._inner.pad_id

    @property
    def unk_id(self) -> int | None:
        return self._inner.unk_id

    @property
    def max_length(self) -> int:
        return self._inner.max_length

    @property
    def uses_segments(self) -> bool:
        return self._inner.uses_segments

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self._inner.pieces(ids)

    def encode(self, texts: Sequence[str]) -> Encoded:
        """As the inner encoder, read from disk where the same texts were encoded before."""
        if sum(map(len, texts)) < WORTH_KEEPING:
            return self._inner.encode(texts)
        path = self._folder / f"{self._name(texts)}.npz"
        found = _read(path)
        if found is None:
            found = self._inner.encode(texts)
            _keep(path, found)
        return found

    def _name(self, texts: Sequence[str]) -> str:
        digest = hashlib.blake2b(self._identity.encode(), digest_size=20)
        digest.update(np.array([len(text) for text in texts], np.int64).tobytes())
        digest.update("".join(texts).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def keep_tokens(encoder: FastEncoder) -> KeptEncoder:
    """The encoder with its answers kept on disk."""
    import tokenizers

    digest = hashlib.blake2b(encoder.backend.to_str().encode("utf-8", "surrogatepass"), digest_size=20)
    digest.update(repr((tokenizers.__version__, sorted((encoder.translation or {}).items()))).encode())
    return KeptEncoder(encoder, digest.hexdigest())


def _read(path: Path) -> Encoded | None:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = Encoded(arrays["ids"], arrays["starts"], arrays["ends"], arrays["bounds"])
        os.utime(path)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None  # not there, or half a file of a crash
    return found


def _keep(path: Path, encoded: Encoded) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        with partial.open("wb") as file:
            np.savez(file, ids=encoded.ids, starts=encoded.starts, ends=encoded.ends, bounds=encoded.bounds)
        partial.replace(path)
        _make_room(path.parent)
    except OSError:
        return  # a cache that cannot be written costs the next run its seconds, nothing else


def _make_room(folder: Path) -> None:
    found = [(file.stat().st_mtime, file.stat().st_size, file) for file in folder.glob("*.npz")]
    left = sum(size for _time, size, _file in found)
    for _time, size, file in sorted(found, key=lambda entry: entry[0]):
        if left <= MOST_BYTES:
            return
        file.unlink(missing_ok=True)
        left -= size
