"""A look into the data files that a script names: labels, and whether the ends of spans are included."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fitune.doctor.log import decode

# What the authors of CLUENER2020 publish (https://github.com/CLUEbenchmark/CLUENER2020): ten types, inclusive ends.
_CLUENER = frozenset(
    ["address", "book", "company", "game", "government", "movie", "name", "organization", "position", "scene"]
)
_MOST_BYTES = 2 * 2**20


@dataclass(frozen=True)
class DataPeek:
    """What was seen; None: not known."""

    source: str = ""
    entity_types: frozenset[str] = frozenset()
    inclusive_ends: bool | None = None
    nested_mentions: bool | None = None
    """label -> {type: {mention: spans}} rather than {type: spans}."""
    classes: tuple[str, ...] = ()
    label_column: str | None = None


def _rows(text: str) -> Iterable[dict[str, Any]]:
    stripped = text.lstrip()
    if stripped.startswith("["):
        try:
            yield from (row for row in json.loads(stripped) if isinstance(row, dict))
        except json.JSONDecodeError:
            return
        return
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue  # a cut last line, or not JSON lines at all: then nothing is known
        if isinstance(row, dict):
            yield row


def _spans(row: dict[str, Any], seen: set[str], mentions: list[bool]) -> Iterable[tuple[int, int, str | None]]:
    label = row.get("label", row.get("labels"))
    for kind, value in label.items() if isinstance(label, dict) else ():
        seen.add(str(kind))
        groups = value.items() if isinstance(value, dict) else [(None, value)]
        mentions.append(isinstance(value, dict))
        for mention, spans in groups:
            for span in spans if isinstance(spans, list) else ():
                if isinstance(span, list) and len(span) == 2 and all(isinstance(n, int) for n in span):
                    yield span[0], span[1], mention
    for key in ("entities", "spans", "label", "labels", "annotations"):
        listed = row.get(key)
        for span in listed if isinstance(listed, list) else ():
            if isinstance(span, dict):
                start = next((span[k] for k in ("start", "start_idx", "start_offset", "begin") if k in span), None)
                end = next((span[k] for k in ("end", "end_idx", "end_offset", "stop") if k in span), None)
                words = next((span[k] for k in ("text", "entity", "word", "mention") if k in span), None)
            elif isinstance(span, list) and len(span) == 3:
                start, end = (
                    [n for n in span if isinstance(n, int)]
                    if sum(isinstance(n, int) for n in span) == 2
                    else (None, None)
                )
                words = None
            else:
                continue
            if isinstance(start, int) and isinstance(end, int):
                yield start, end, words if isinstance(words, str) else None


def _peek_json(text: str, source: str) -> DataPeek:
    kinds: set[str] = set()
    mentions: list[bool] = []
    inclusive: list[bool] = []
    classes: dict[str, None] = {}
    for row in _rows(text):
        for start, end, mention in _spans(row, kinds, mentions):
            if mention is not None:
                inclusive.append(end - start + 1 == len(mention))
            elif start == end or end >= len(str(row.get("text", ""))):
                inclusive.append(start == end)  # a span of one character; an end behind the text is exclusive
        label = row.get("label", row.get("labels"))
        if isinstance(label, str | int):
            classes[str(label)] = None
    return DataPeek(
        source,
        frozenset(kinds),
        sum(inclusive) > len(inclusive) / 2 if inclusive else None,
        sum(mentions) > len(mentions) / 2 if mentions else None,
        tuple(classes),
        "label" if classes else None,
    )


def _peek_table(text: str, source: str, delimiter: str) -> DataPeek:
    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    columns = list(rows[0]) if rows else []
    column = next(
        (name for name in columns if str(name).lower() in {"label", "labels", "类别", "标签", "category"}), None
    )
    classes = {str(row[column]): None for row in rows if row.get(column) not in {None, ""}} if column else {}
    return DataPeek(source, classes=tuple(classes) if len(classes) < 200 else (), label_column=column)


def peek(names: Sequence[str], folder: Path | None) -> DataPeek:
    """The first file among ``names`` that lies in ``folder`` and tells something; else what is published of CLUENER."""
    for name in names:
        suffix = Path(name).suffix.lower() if 0 < len(name) < 260 and "\n" not in name else ""
        if folder is None or suffix not in {".json", ".jsonl", ".csv", ".tsv"}:
            continue
        path = folder / name
        if not path.is_file():
            continue
        with path.open("rb") as file:
            text = decode(file.read(_MOST_BYTES))
        found = (
            _peek_json(text, name)
            if suffix.startswith(".json")
            else _peek_table(text, name, "\t" if suffix == ".tsv" else ",")
        )
        if found.entity_types or found.classes or found.inclusive_ends is not None:
            if "cluener" in name.lower() and found.inclusive_ends is None:
                return DataPeek(found.source, found.entity_types, True, found.nested_mentions)
            return found
    if any("cluener" in name.lower() for name in names):
        return DataPeek("CLUENER2020", _CLUENER, True, None)
    return DataPeek()
