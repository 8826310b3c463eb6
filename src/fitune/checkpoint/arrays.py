"""Arrays as bytes with a shape, in the safetensors format: a JSON header, then the raw values. No torch, no pickle.

Written here by hand because a checkpoint is hashed and streamed while it is written; the format is the public one
(github.com/huggingface/safetensors, "Format"): 8 bytes little-endian header length, header, values without gaps.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# safetensors' name of a type -> bytes per element.
ITEM_BYTES = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2"), 1),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 2),
    **dict.fromkeys(("I32", "U32", "F32"), 4),
    **dict.fromkeys(("I64", "U64", "F64"), 8),
}

# A larger header than any model's is a sign of damage, not a reason to allocate it.
_MOST_HEADER_BYTES = 100_000_000


class Unreadable(ValueError):
    """The file is not what the format says."""


@dataclass(frozen=True)
class Array:
    """Values of one tensor: contiguous, little-endian, row-major."""

    dtype: str
    """safetensors' name, such as ``F32``."""
    shape: tuple[int, ...]
    data: memoryview
    """The bytes; ``len`` is ``bytes``."""

    @property
    def nbytes(self) -> int:
        return ITEM_BYTES[self.dtype] * math.prod(self.shape)


def chunks(arrays: Mapping[str, Array], chunk_bytes: int = 1 << 23) -> Iterator[bytes | memoryview]:
    """The file's bytes in order. Arrays are sorted by name."""
    header: dict[str, object] = {}
    position = 0
    for name in sorted(arrays):
        array = arrays[name]
        if array.data.nbytes != array.nbytes:
            raise ValueError(f"{name}: {array.data.nbytes} bytes for shape {array.shape} of {array.dtype}")
        header[name] = {
            "dtype": array.dtype,
            "shape": list(array.shape),
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in sorted(arrays):
        data = arrays[name].data.cast("B") if arrays[name].nbytes else memoryview(b"")
        for start in range(0, len(data), chunk_bytes):
            yield data[start : start + chunk_bytes]


def read_arrays(path: Path) -> dict[str, Array]:
    """Every array of a file, mapped into memory and read when used.

    Raises:
        Unreadable: the header is damaged, or the values do not cover the rest of the file.
    """
    with path.open("rb") as file:
        head = file.read(8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or length > _MOST_HEADER_BYTES:
            raise Unreadable(f"{path}: no safetensors header")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise Unreadable(f"{path}: the header is damaged") from error
        size = file.seek(0, 2)
        if size < 8 + length:
            raise Unreadable(f"{path}: ends in its header")
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    body, arrays = mapped[8 + length :], dict[str, Array]()
    end = 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        array = Array(entry["dtype"], tuple(entry["shape"]), body[start:end])
        if array.data.nbytes != array.nbytes:
            raise Unreadable(f"{path}: {name} has {array.data.nbytes} bytes, not {array.nbytes}")
        arrays[name] = array
    return arrays
