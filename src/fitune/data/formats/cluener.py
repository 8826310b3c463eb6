"""CLUENER: one JSON object a line, ``{"text": ..., "label": {type: {mention: [[start, end], ...]}}}``, ends inclusive.

The mention that stands with each span decides what the numbers mean, so files whose ends are exclusive are read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from fitune.data.formats.base import Sample, TextFormat
from fitune.data.formats.beside import Beside
from fitune.data.formats.json_objects import (
    Container,
    JsonObject,
    dump_objects,
    iterate_objects,
    object_rows,
    sample_objects,
)
from fitune.data.formats.offsets import BadSpan, Convention, Stored, detect_convention, place, store
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction, Span


def recognize(sample: Sample) -> Format | None:
    found = sample_objects(sample)
    if found is None:
        return None
    container, objects = found
    named = [o for o in objects if isinstance(o.get("text"), str)]
    labelled = [o for o in named if _stored(o.get("label")) is not None]
    if not labelled or len(labelled) * 2 < len(objects):
        return None
    rows = ((o["text"], _stored(o["label"]) or []) for o in labelled)
    convention, evidence = detect_convention(rows)
    details: dict[str, Any] = {"container": container, **convention.details()}
    if [o.get("id") for o in objects] == list(range(len(objects))):
        details["numbered"] = True
    return Format(
        name="cluener",
        task="ner",
        details=details,
        evidence=_('JSON objects with "text" and "label": type -> mention -> offsets; {evidence}', evidence=evidence),
    )


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    convention = Convention.from_details(format.details)
    container: Container = format.details.get("container", "lines")
    for number, plain in iterate_objects(lines, container, tally):
        text = plain.get("text")
        if not isinstance(text, str) or not text:
            tally.skip(number, _('"{key}" is missing or no text', key="text"))
            continue
        stored = _stored(plain.get("label"))
        if stored is None:
            if plain.get("label") is None:
                yield Example(text, source=tally.at(number))
            else:
                tally.skip(number, _('"label" is not of the form type -> mention -> offsets'))
            continue
        try:
            spans = place(text, stored, convention, tally)
        except BadSpan as error:
            tally.skip(number, str(error))
            continue
        yield Example(text, spans, source=tally.at(number))


def dump(
    items: Iterable[Example | Prediction], format: Format, beside: Beside[JsonObject] | None = None
) -> Iterator[str]:
    """Scores have no place in this format."""
    convention = Convention.from_details(format.details)
    numbered = bool(format.details.get("numbered"))

    def objects() -> Iterator[JsonObject]:
        for index, item in enumerate(items):
            row = beside.of(item) if beside else None
            plain: JsonObject = dict(row) if row is not None else {"id": index} if numbered else {}
            plain["text"] = item.text
            if item.spans is not None:
                plain["label"] = _label(item.text, item.spans, convention)
            yield plain

    return dump_objects(objects(), format.details.get("container", "lines"))


def _label(text: str, spans: Iterable[Span], convention: Convention) -> JsonObject:
    label: dict[str, dict[str, list[list[int]]]] = {}
    for span in spans:
        mention = text[span.start : span.end]
        label.setdefault(span.label, {}).setdefault(mention, []).append(list(store(text, span, convention)))
    return label


def _stored(label: object) -> list[Stored] | None:
    """The spans of a CLUENER label, or None when it has another shape."""
    if not isinstance(label, dict):
        return None
    found: list[Stored] = []
    for kind, mentions in cast(dict[str, object], label).items():
        if not isinstance(mentions, dict):
            return None
        for mention, places in cast(dict[str, object], mentions).items():
            if not isinstance(places, list):
                return None
            for pair in cast(list[object], places):
                if not isinstance(pair, list) or len(cast(list[object], pair)) != 2:
                    return None
                found.append(Stored(pair[0], pair[1], kind, mention))
    return found


CLUENER = TextFormat("cluener", recognize, parse, dump, object_rows)
