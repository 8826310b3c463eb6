"""Which encoding a text file is in, and its lines: recognised by decoding the whole file, never by replacing bytes.

A file is read twice, once to know its encoding for sure and once for its rows; the first pass decodes in blocks and
keeps nothing, so that memory does not grow with the file.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from charset_normalizer import from_bytes

from fitune.messages import _
from fitune.values import Refusal

_BLOCK_BYTES = 1 << 20
_SAMPLE_BYTES = 1 << 18
# Byte order marks; UTF-32 first, since its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings whose U+FEFF at the beginning of a file would be taken for a mark.
_MARKABLE = frozenset(("utf-8", "utf-16-le", "utf-16-be", "utf_16_le", "utf_16_be"))
# The most frequent characters of Chinese text, simplified and traditional: they tell GB18030 from Big5.
_FREQUENT = frozenset(
    "的一是不了在有人我他这這个個们們来來到大上为為和国國地要就出会會可也你对對生能而子那得于於着下自"
)
_DAMAGED_SHARE = 0.5
"""A file is UTF-8 with broken lines when at least this share of its non-ASCII lines is valid UTF-8."""


# First bytes of files that are often named by mistake. Archives that hold one file are told apart before (reading).
_BINARY = (
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"RIFF", "RIFF"),
    (b"%PDF", "PDF"),
    (b"PK\x03\x04", "ZIP or DOCX"),
    (b"\xd0\xcf\x11\xe0", "XLS or DOC"),
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"SQLite format 3", "SQLite"),
    (b"\x89HDF", "HDF5"),
    (b"\x93NUMPY", "NumPy"),
    (b"\x7fELF", "ELF"),
)
_TEXT_BYTES = bytes((*b"\t\n\v\f\r\x1a\x1b", *range(0x20, 0x7F), *range(0x80, 0x100)))
_CONTROLS = 0.01
"""A file that no encoding fits is binary from this share of control bytes on; random bytes have 0.1."""


@dataclass(frozen=True)
class Encoding:
    """A recognised encoding."""

    name: str
    newline: str
    damaged: bool = False
    """Some lines hold bytes that the encoding does not allow; they come through as lone surrogates U+DC80..DCFF."""


def recognize_encoding(path: Path, expected: str | None = None) -> Encoding:
    """The encoding of a text file: ``expected`` if that fits and UTF-8 does not, else the one that fits best.

    Raises Refusal when no encoding fits, naming the first bad byte.
    """
    with path.open("rb") as file:
        head = file.read(_SAMPLE_BYTES)
    if (kind := _kind_of(head)) and _control_share(head):
        # Before any guess: two bytes at a time, much of an old Excel file could be UTF-16.
        raise _binary(path, kind)
    if (
        expected is not None
        and (b"\0" in head or _first_bad_byte(path, "utf-8") is not None)
        and _first_bad_byte(path, expected) is None
    ):
        return Encoding(expected, _newline(head.decode(expected, "ignore")))
    for mark, name in _MARKS:
        if head.startswith(mark):
            return _checked(path, name, head)
    if (name := _utf16_without_mark(head)) and _first_bad_byte(path, name) is None:
        return Encoding(name, _newline(head.decode(name, "ignore")))
    bad = _first_bad_byte(path, "utf-8")
    if bad is None:
        return Encoding("utf-8", _newline(head.decode("utf-8", "ignore")))
    return _not_utf8(path, head, bad)


def read_lines(path: Path, encoding: Encoding) -> Iterator[str]:
    """The lines of a file without their ends; broken bytes come through as lone surrogates when it is damaged."""
    errors = "surrogateescape" if encoding.damaged else "strict"
    end = "\r" if encoding.newline == "\r" else "\n"
    with path.open(encoding=encoding.name, errors=errors, newline=end) as file:
        for line in file:
            # Files that people edited on several machines mix line ends.
            if line[-2:] == "\r\n":
                yield line[:-2]
            else:
                yield line[:-1] if line[-1:] == end else line


def write_lines(file: IO[str], lines: Iterable[str], encoding: str, newline: str) -> None:
    """Lines with their ends; a first line that begins with U+FEFF keeps it, though readers take it for a mark."""
    first = True
    for line in lines:
        if first and line[:1] == "\ufeff" and encoding in _MARKABLE:
            file.write("\ufeff")
        first = False
        file.write(line + newline)


def _checked(path: Path, name: str, head: bytes) -> Encoding:
    bad = _first_bad_byte(path, name)
    if bad is None:
        return Encoding(name, _newline(head.decode(name, "ignore")))
    if name == "utf-8-sig" and _valid_share(path, "utf-8") >= _DAMAGED_SHARE:
        return Encoding(name, _newline(head.decode("utf-8", "ignore")), damaged=True)
    raise _undecodable(path, name, bad)


def _not_utf8(path: Path, head: bytes, bad: int) -> Encoding:
    """GB18030, Big5, UTF-8 with broken lines, or what charset-normalizer finds."""
    if _valid_share(path, "utf-8") >= _DAMAGED_SHARE or _mostly_utf8(head) or _cut_utf8(path, bad):
        return Encoding("utf-8", _newline(head.decode("utf-8", "ignore")), damaged=True)
    found = [name for name in ("gb18030", "big5") if _first_bad_byte(path, name) is None]
    if found:
        best = max(found, key=lambda name: sum(c in _FREQUENT for c in head.decode(name, "ignore")))
        if len(found) > 1 or any(c in _FREQUENT for c in head.decode(best, "ignore")) or not _other(path, head):
            return Encoding(best, _newline(head.decode(best, "ignore")))
    if name := _other(path, head):
        return Encoding(name, _newline(head.decode(name, "ignore")))
    if _valid_share(path, "gb18030") >= 0.9:
        return Encoding("gb18030", _newline(head.decode("gb18030", "ignore")), damaged=True)
    raise _undecodable(path, "utf-8", bad)


def _cut_utf8(path: Path, bad: int) -> bool:
    """Whether the file is UTF-8 but for its end, which lies within a character: a copy that was broken off."""
    if path.stat().st_size - bad > 3:
        return False
    with path.open("rb") as file:
        file.seek(max(0, bad - _BLOCK_BYTES))
        before = file.read(min(bad, _BLOCK_BYTES))
        rest = file.read()
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(rest)
    except UnicodeDecodeError:
        return False
    return not before.isascii()


def _other(path: Path, head: bytes) -> str | None:
    """What charset-normalizer makes of the file, when all of it decodes that way and it is not mere bytes."""
    if b"\0" in head:
        return None
    best = from_bytes(head[: 1 << 16]).best()
    # Single-byte encodings accept any bytes at all, so they prove nothing about a binary file.
    if (
        best is None
        or best.chaos > 0.1
        or best.encoding.startswith("utf")
        or _first_bad_byte(path, best.encoding) is not None
    ):
        return None
    return best.encoding


def _first_bad_byte(path: Path, name: str) -> int | None:
    """Offset of the first byte that ``name`` does not allow, or None. Reads in blocks."""
    decoder = codecs.getincrementaldecoder(name)("strict")
    done = 0
    pending = 0
    with path.open("rb") as file:
        while True:
            block = file.read(_BLOCK_BYTES)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                return max(0, done - pending + error.start)
            if not block:
                return None
            done += len(block)
            pending = len(decoder.getstate()[0])


def _valid_share(path: Path, name: str) -> float:
    """Share of the non-ASCII lines that decode."""
    good = bad = 0
    with path.open("rb") as file:
        for line in file:
            if not line.isascii():
                try:
                    line.decode(name)
                    good += 1
                except UnicodeDecodeError:
                    bad += 1
    return good / max(1, good + bad)


def _mostly_utf8(head: bytes) -> bool:
    """Long lines may each have a broken byte: then few of all the bytes are broken. Other encodings break most."""
    text = head.decode("utf-8", "surrogateescape")
    broken = sum("\udc80" <= c <= "\udcff" for c in text)
    good = sum(c > "\x7f" for c in text) - broken
    return good >= 4 and broken <= 0.2 * good


def _utf16_without_mark(head: bytes) -> str | None:
    """UTF-16 that lacks its mark: its ASCII characters, line ends above all, bring zero bytes into the file."""
    zeros = head.count(0)
    if not zeros or len(head) < 4:
        return None
    try:
        head.decode("utf-8")
        # Valid UTF-8 with a zero byte here and there is just that.
        if zeros < 0.2 * len(head):
            return None
    except UnicodeDecodeError:
        pass
    even = head[: len(head) // 2 * 2]
    shares = {name: _usual_share(even.decode(name, "replace")) for name in ("utf-16-le", "utf-16-be")}
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= 0.8 else None


def _usual_share(text: str) -> float:
    """Share of ASCII, CJK and full-width characters; bytes read in the wrong way seldom give these."""
    ranges = (("\x20", "\x7e"), ("\u3000", "\u303f"), ("\u4e00", "\u9fff"), ("\uff00", "\uffef"))
    usual = sum(c in "\t\r\n" or any(low <= c <= high for low, high in ranges) for c in text)
    return usual / max(1, len(text))


def _newline(sample: str) -> str:
    line_feeds = sample.count("\n")
    if line_feeds:
        return "\r\n" if sample.count("\r\n") * 2 > line_feeds else "\n"
    return "\r" if "\r" in sample else "\n"


def _undecodable(path: Path, name: str, bad: int) -> Refusal:
    """What the file is instead of text in one encoding, and what to do about that."""
    with path.open("rb") as file:
        head = file.read(_SAMPLE_BYTES)
        file.seek(bad)
        value = file.read(1)
    line = _line_of(path, bad)
    kind = _kind_of(head)
    if kind or (name not in ("utf-16", "utf-32") and _control_share(head) >= _CONTROLS):
        return _binary(path, kind or _("binary data"))
    if refusal := _mixed(path):
        return refusal
    if path.stat().st_size - bad < 4 and name.startswith("utf"):
        return Refusal(
            _("it ends within a character of {encoding}: the copy was broken off", encoding=name),
            where=f"{path}:{line}",
            next_step=_("Copy or download the file again."),
            code="FT191",
        )
    return Refusal(
        _(
            "byte {position} (0x{value}) is not valid {encoding}, and no other encoding fits the file either",
            position=bad,
            value=value.hex().upper(),
            encoding=name,
        ),
        where=f"{path}:{line}",
        next_step=_("Open it in the program that wrote it, and save it as UTF-8 (Windows: as CSV UTF-8)."),
        code="FT191",
    )


def _line_of(path: Path, position: int) -> int:
    """The line that a byte stands in; reads in blocks."""
    line, left = 1, position
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
            line += block.count(b"\n")
            left -= len(block)
    return line


def _kind_of(head: bytes) -> str:
    return next((kind for signature, kind in _BINARY if head.startswith(signature)), "")


def _binary(path: Path, kind: str) -> Refusal:
    """The refusal of a file that is no text at all."""
    step = _("Name the file with the texts, as CSV, JSON or plain text; what is this one? file {path}", path=path)
    if " or " in kind:
        # An .xlsx is read; an .xls, a .docx or an archive of files is not.
        step = _("Unpack it, or open it in the program that wrote it and save it as CSV in UTF-8.")
    found = _("this is no text file: going by its bytes it is {kind}", kind=kind)
    return Refusal(found, where=str(path), next_step=step, code="FT191")


def _control_share(head: bytes) -> float:
    """Share of bytes that no text in an encoding of ASCII's family has: controls other than tab, line ends, form feed
    and escape."""
    return len(head.translate(None, delete=_TEXT_BYTES)) / max(1, len(head))


def _mixed(path: Path) -> Refusal | None:
    """The refusal of a file some of whose lines are UTF-8 and all others of one other encoding."""
    first: dict[str, int] = {}
    possible = ["gb18030", "big5"]
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.isascii():
                continue
            if _decodes(line, "utf-8"):
                first.setdefault("utf-8", number)
                continue
            first.setdefault("", number)
            possible = [name for name in possible if _decodes(line, name)]
            if not possible:
                return None
    if len(first) < 2:
        return None
    other = possible[0]
    # One line for every shell: what is valid UTF-8 stays, the rest is decoded.
    command = (
        f"python -c \"open('fixed{path.suffix}', 'wb').writelines(l if l.decode('utf-8', 'ignore').encode() == l "
        f"else l.decode('{other}').encode() for l in open('{path.as_posix()}', 'rb'))\""
    )
    return Refusal(
        _(
            "its lines are in two encodings: line {first} is utf-8, line {second} is {encoding}",
            first=first["utf-8"],
            second=first[""],
            encoding=other,
        ),
        where=f"{path}:{max(first.values())}",
        next_step=_("Were two files joined? This makes one in UTF-8: {command}", command=command),
        code="FT191",
    )


def _decodes(line: bytes, name: str) -> bool:
    try:
        line.decode(name)
    except UnicodeDecodeError:
        return False
    return True
