"""Files that are no text: what they look like, said instead of their bytes."""

from __future__ import annotations

from fitune.doctor.log import decode
from fitune.messages import _
from fitune.values import Refusal

_LOOKED_AT = 65_536
_NAMES = (
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"(\xb5/\xfd", "zstd"),
    (b"7z\xbc\xaf", "7z"),
    (b"\x93NUMPY", "NumPy"),
    (b"\x89HDF", "HDF5"),
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"GGUF", "GGUF"),
    (b"SQLite format 3", "SQLite"),
    (b"\x7fELF", "ELF"),
    (b"\x80\x02", "pickle"),
    (b"\x80\x04", "pickle"),
    (b"\x80\x05", "pickle"),
)


def refuse_binary(raw: bytes, where: str) -> None:
    """Refusal for bytes that are no text of a console, in any of its encodings."""
    head = raw[:_LOOKED_AT]
    name = next((name for magic, name in _NAMES if head.startswith(magic)), "")
    if name == "zip" and b"data.pkl" in head:
        name = "a PyTorch checkpoint (zip)"
    if not name and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 10**8 and b'"dtype"' in head:
        name = "safetensors"
    if not name and not _controls(head):
        return
    next_step = _("Give the text that the program printed: python train.py 2>&1 | tee error.log, then diagnose that.")
    if name == "gzip":
        next_step = _("Unpack it first: gunzip -c {path} | fitune diagnose -", path=where)
    found = _("this is not a text log; it looks like {kind}", kind=name) if name else _("this is not a text log")
    raise Refusal(found, where=where, next_step=next_step)


def _controls(head: bytes) -> bool:
    """More than one character in thirty is a control character that no console prints; NULs of a crash aside."""
    text = decode(head).replace("\0", "")
    bad = sum(1 for c in text if (c < " " and c not in "\t\n\r\b\f\v\x1b\x07") or c == "\x7f")
    return bool(head) and (not text or bad * 30 > len(text))
