"""Texts with a list of spans as JSON, in the usual spellings, doccano's among them.

``{"text": ..., "entities" | "label" | "labels" | "spans" | "annotations": [[start, end, label], ...]}``, or objects
with ``start``/``start_offset``/``begin`` ..., ``end`` ..., ``label``/``type`` ... and perhaps the mention. What the
offsets count is found by comparing stored mentions with the text, where there are any.
"""

from __future__ import annotations

from collections import Counter
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
from fitune.data.formats.records import container_name
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction, Span

_TEXT_KEYS = ("text", "sentence", "content", "query", "context", "data", "raw_text", "originalText", "文本")
_SPAN_KEYS = (
    "entities", "spans", "label", "labels", "annotations", "annotation", "ents", "entity", "entity_list", "ner",
    "mentions", "tags", "mention_data", "result", "实体",
)  # fmt: skip
_START_KEYS = ("start", "start_offset", "start_idx", "start_index", "start_pos", "startPos", "begin", "from", "offset")
_END_KEYS = ("end", "end_offset", "end_idx", "end_index", "end_pos", "endPos", "stop", "to")
_LABEL_KEYS = ("label", "type", "labels", "entity_type", "entity_label", "label_type", "tag", "category", "class",
               "entity_group", "entity")  # fmt: skip
_MENTION_KEYS = ("text", "mention", "word", "entity", "value", "surface", "name", "span")
_ALWAYS_SPANS = ("entities", "spans", "ents", "entity_list")


def recognize(sample: Sample) -> Format | None:
    found = sample_objects(sample)
    if found is None:
        return None
    container, objects = found
    text_key = next((k for k in _TEXT_KEYS if sum(isinstance(o.get(k), str) for o in objects) * 2 > len(objects)), None)
    if text_key is None:
        return None
    for key in _SPAN_KEYS:
        lists = [cast(list[object], o[key]) for o in objects if isinstance(o.get(key), list)]
        items = [item for items in lists for item in items]
        shape = _shape(items)
        if shape is None and not (lists and not items and key in _ALWAYS_SPANS):
            continue
        details: dict[str, Any] = {"container": container, "text": text_key, "spans": key}
        details.update(shape or {"shape": "objects", "start": "start", "end": "end", "label": "label"})
        rows = (
            (o[text_key], stored)
            for o in objects
            if isinstance(o.get(text_key), str) and (stored := _stored(o.get(key), details)) is not None
        )
        convention, evidence = detect_convention(rows)
        details.update(convention.details())
        told = _(
            'JSON objects ({container}) with "{text}" and a list of spans in "{spans}"; {evidence}',
            container=container_name(container),
            text=text_key,
            spans=key,
            evidence=evidence,
        )
        return Format(name="spans", task="ner", details=details, evidence=told)
    return None


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    details = format.details
    convention = Convention.from_details(details)
    text_key, span_key = str(details["text"]), str(details["spans"])
    container: Container = details.get("container", "lines")
    for number, plain in iterate_objects(lines, container, tally):
        text = plain.get(text_key)
        if not isinstance(text, str) or not text:
            tally.skip(number, _('"{key}" is missing or no text', key=text_key))
            continue
        value = plain.get(span_key)
        stored = _stored(value, details)
        if stored is None:
            if value is None:
                yield Example(text, source=tally.at(number))
            else:
                tally.skip(number, _('"{key}" is missing or no list of spans', key=span_key))
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
    """Scores stand in each span, or beside the list where spans are lists."""
    details = format.details
    convention = Convention.from_details(details)

    def objects() -> Iterator[JsonObject]:
        for item in items:
            row = beside.of(item) if beside else None
            plain: JsonObject = {**(row or {}), details["text"]: item.text}
            if item.spans is not None:
                plain[details["spans"]] = [_written(item.text, span, convention, details) for span in item.spans]
                scores = [span.score for span in item.spans]
                if details["shape"] == "lists" and scores and None not in scores:
                    plain["scores"] = scores
            yield plain

    return dump_objects(objects(), details.get("container", "lines"))


def _written(text: str, span: Span, convention: Convention, details: dict[str, Any]) -> object:
    start, end = store(text, span, convention)
    if details["shape"] == "lists":
        return [span.label, start, end] if details.get("label_first") else [start, end, span.label]
    plain: JsonObject = {details["start"]: start}
    if details.get("length"):
        plain[details["length"]] = end - start + convention.inclusive
    else:
        plain[details["end"]] = end
    plain[details["label"]] = [span.label] if details.get("label_list") else span.label
    if details.get("mention"):
        plain[details["mention"]] = text[span.start : span.end]
    if span.score is not None:
        plain["score"] = span.score
    return plain


def _shape(items: list[object]) -> dict[str, Any] | None:
    """How the spans are spelled, or None when these are no spans."""
    lists = [cast(list[object], item) for item in items if isinstance(item, list)]
    dicts = [cast(JsonObject, item) for item in items if isinstance(item, dict)]
    if len(lists) * 2 > len(items):
        first = sum(len(i) >= 3 and isinstance(i[0], str) and _number(i[1]) and _number(i[2]) for i in lists)
        last = sum(len(i) >= 3 and _number(i[0]) and _number(i[1]) for i in lists)
        if max(first, last) * 2 <= len(lists):
            return None
        return {"shape": "lists", "label_first": first > last}
    if len(dicts) * 2 <= len(items) or not dicts:
        return None
    keys = Counter(key for item in dicts for key in item)
    common = [key for key, count in keys.items() if count * 2 > len(dicts)]
    start = next((k for k in _START_KEYS if k in common), None)
    end = next((k for k in _END_KEYS if k in common and k != start), None)
    label = next((k for k in _LABEL_KEYS if k in common), None)
    if start is None or label is None or (end is None and "length" not in common):
        return None
    mention = next((k for k in _MENTION_KEYS if k in common and k not in (start, end, label)), None)
    shape: dict[str, Any] = {"shape": "objects", "start": start, "end": end or "end", "label": label}
    shape.update(mention=mention, length=None if end else "length")
    shape["label_list"] = any(isinstance(item.get(label), list) for item in dicts)
    return shape


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _stored(value: object, details: dict[str, Any]) -> list[Stored] | None:
    """The spans of a row, or None when it has no list of them."""
    if not isinstance(value, list):
        return None
    found: list[Stored] = []
    for item in cast(list[object], value):
        if isinstance(item, list):
            parts = cast(list[object], item)
            if len(parts) < 3:
                return None
            if isinstance(parts[0], str) and not isinstance(parts[2], str):
                found.append(Stored(parts[1], parts[2], parts[0]))
            else:
                found.append(Stored(parts[0], parts[1], parts[2]))
        elif isinstance(item, dict):
            plain = cast(JsonObject, item)
            start, end = plain.get(str(details.get("start"))), plain.get(str(details.get("end")))
            if details.get("length") and end is None:
                length = plain.get(str(details["length"]))
                end = start + length if isinstance(start, int) and isinstance(length, int) else None
            mention = plain.get(str(details.get("mention"))) if details.get("mention") else None
            label = plain.get(str(details.get("label")))
            labels = cast(list[object], label) if isinstance(label, list) else [label]
            told = mention if isinstance(mention, str) else None
            found.extend(Stored(start, end, name, told) for name in labels)
        else:
            return None
    return found


SPANS = TextFormat("spans", recognize, parse, dump, object_rows)
