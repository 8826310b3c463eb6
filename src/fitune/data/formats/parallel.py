"""Two files side by side, sentences in one and tags in the other, line by line.

``sentences.txt`` and ``tags.txt``, ``seq.in`` and ``seq.out``, ``source.txt`` and ``target.txt`` ...: naming either
file, or the folder that holds them, is enough. Tokens are parted by spaces, or every character has a tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from fitune.data.encodings import read_lines, recognize_encoding, write_lines
from fitune.data.formats.base import Columns, PathFormat, one_line
from fitune.data.formats.joining import recognize_joiner
from fitune.data.formats.tag_cells import read_tagged, tagged
from fitune.data.rows import Format, Tally
from fitune.data.schemes import detect_scheme, flatten, parse_tag, spans_to_tags
from fitune.messages import _
from fitune.values import Example, Prediction

_NAMES = (
    ("sentences", "tags"), ("sentences", "labels"), ("sentence", "tag"), ("sentence", "label"), ("seq.in", "seq.out"),
    ("source", "target"), ("texts", "labels"), ("texts", "tags"), ("text", "tags"), ("text", "labels"),
    ("text", "tag"), ("text", "label"), ("tokens", "tags"), ("tokens", "labels"), ("words", "tags"), ("chars", "tags"),
    ("src", "tgt"), ("input", "output"), ("corpus", "label"),
)  # fmt: skip
_OWN_SUFFIX = ".tags"
_SAMPLE_LINES = 1000


def find_pair(path: Path) -> tuple[Path, Path] | None:
    """(sentences, tags) by their names, or None."""
    if path.is_dir():
        for first, second in _NAMES:
            for one in sorted(path.glob(f"*{first}*")):
                other = one.with_name(one.name.replace(first, second, 1))
                if one.is_file() and other != one and other.is_file():
                    return one, other
        return None
    if path.with_name(path.name + _OWN_SUFFIX).is_file():
        return path, path.with_name(path.name + _OWN_SUFFIX)
    if path.name.endswith(_OWN_SUFFIX) and (bare := path.with_name(path.name[: -len(_OWN_SUFFIX)])).is_file():
        return bare, path
    for first, second in _NAMES:
        for old, new in ((first, second), (second, first)):
            other = path.with_name(path.name.replace(old, new, 1))
            if old in path.name and other != path and other.is_file():
                return (path, other) if old == first else (other, path)
    return None


def recognize(path: Path, columns: Columns, forced: bool) -> Format | None:
    pair = find_pair(path)
    if pair is None or any(file.stat().st_size == 0 for file in pair):
        return None
    encodings = [recognize_encoding(file) for file in pair]
    iterators = [read_lines(file, encoding) for file, encoding in zip(pair, encodings, strict=True)]
    sample = list(islice(zip(*iterators, strict=False), _SAMPLE_LINES))
    rows = [(text, tags.split()) for text, tags in sample if tags.strip()]
    good = [(text, tags) for text, tags in rows if all(map(parse_tag, tags))]
    if not good or len(good) < 0.9 * len(rows):
        return None
    words = sum(len(text.split()) == len(tags) for text, tags in good)
    characters = sum(len(text) == len(tags) for text, tags in good)
    if max(words, characters) < 0.5 * len(good):
        return None
    detected = detect_scheme(tags for _text, tags in good)
    by_character = characters > words
    tokens = [] if by_character else [token for text, _tags in good for token in text.split()]
    details: dict[str, Any] = {"characters": by_character, "joiner": recognize_joiner(tokens)}
    details.update(scheme=detected.scheme if detected else "BIO", mark=detected.separator if detected else "-")
    return Format(
        name="parallel",
        task="ner",
        encoding=encodings[0].name,
        newline=encodings[0].newline,
        details=details,
        evidence=_(
            "sentences in {sentences}, {scheme} tags in {tags}, line by line",
            sentences=pair[0].name,
            tags=pair[1].name,
            scheme=details["scheme"],
        ),
    )


def parse(path: Path, format: Format, tally: Tally) -> Iterator[Example]:
    pair = find_pair(path) or (path, path)
    tally.file = str(pair[0])
    details = format.details
    iterators = [read_lines(file, recognize_encoding(file)) for file in pair]
    for number, (text, tag_line) in enumerate(zip_longest(*iterators), 1):
        if not (text or "").strip() and not (tag_line or "").strip():
            tally.structure["blank"] += 1
            continue
        tally.rows += 1
        if text is None or tag_line is None:
            missing = pair[0] if text is None else pair[1]
            tally.skip(number, _("{file} has no such line", file=missing.name))
            continue
        words = list(text) if details["characters"] else text.split()
        example = read_tagged(number, words, tag_line.split(), details["scheme"], details["joiner"], tally)
        if example is not None:
            yield example


def write(path: Path, items: Iterable[Example | Prediction], format: Format, original: Path | None = None) -> None:
    """The sentences to ``path``, the tags beside it: there is nothing else to carry over."""
    other = _tag_path(path)
    details, newline = format.details, format.newline
    with (
        path.open("w", encoding=format.encoding, newline="") as texts,
        other.open("w", encoding=format.encoding, newline="") as tags,
    ):
        for index, item in enumerate(items):
            if details["characters"]:
                text = one_line(item, "parallel")
                spans = flatten(item.spans or ())[0]
                row = spans_to_tags(spans, len(text), details["scheme"], separator=details["mark"])
            else:
                words, row = tagged(item, format)
                text = " ".join(words)
            # write_lines guards the beginning of a file alone.
            write_lines(texts, [text], format.encoding if index == 0 else "utf-8-sig", newline)
            tags.write(" ".join(row) + newline)


def _tag_path(path: Path) -> Path:
    for first, second in _NAMES:
        if first in path.name:
            return path.with_name(path.name.replace(first, second, 1))
    return path.with_name(path.name + _OWN_SUFFIX)


PARALLEL = PathFormat("parallel", recognize, parse, write, files=2)
