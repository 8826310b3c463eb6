"""JSON objects with a text and, for classification, a label: one a line, one after another, or one array."""

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
from fitune.data.formats.layouts import choose_columns, text_of, undecided_label
from fitune.data.formats.tables import RowMaker, fits_columns, flag_cells, label_details
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction


def recognize(sample: Sample) -> Format | None:
    found = sample_objects(sample)
    if found is None:
        return None
    container, objects = found
    header = list(dict.fromkeys(key for plain in objects for key in plain))
    rows = [[_flat(plain.get(key)) for key in header] for plain in objects]
    strings = [key for i, key in enumerate(header) if any(isinstance(row[i], str) and row[i] for row in rows)]
    if not strings:
        return None
    layout = choose_columns(header, rows, sample.columns, sample.path)
    if layout is None or header[layout.text] not in strings:
        return None
    if layout.undecided and sample.labelled:
        raise undecided_label(layout, header, sample.path)
    details: dict[str, Any] = {"container": container, "text": header[layout.text], "text_pair": None, "label": None}
    if layout.indicators:
        details["label_names"] = [header[i] for i in layout.indicators]
    if layout.text_pair is not None:
        details["text_pair"] = header[layout.text_pair]
    if layout.label is not None:
        details["label"] = header[layout.label]
        values = [plain[header[layout.label]] for plain in objects if header[layout.label] in plain]
        if any(isinstance(value, dict) for value in values):
            return None
        lists = any(isinstance(value, list) for value in values)
        details["label_type"] = "list" if lists else "number" if all(map(_is_number, values)) else "text"
        if not lists:
            details.update(label_details([text_of(value) for value in values], sample.columns, None))
    return Format(
        name="json",
        task="classification" if layout.labelled else None,
        details=details,
        evidence=_(
            "JSON objects ({container}); {columns}", container=container_name(container), columns=layout.evidence
        ),
    )


def container_name(container: Container) -> str:
    """For people."""
    if container == "lines":
        return _("one a line")
    return _("one array") if container == "array" else _("one after another")


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    details = format.details
    container: Container = details.get("container", "lines")
    text_key, pair_key, label_key = details["text"], details.get("text_pair"), details.get("label")
    flags: list[str] = details.get("label_names", [])
    make = RowMaker(format, tally).example
    for number, plain in iterate_objects(lines, container, tally):
        tally.rows -= 1  # RowMaker counts it
        text = plain.get(text_key)
        pair = text_of(plain.get(pair_key)) if pair_key is not None else None
        value = plain.get(label_key) if label_key is not None else None
        label: str | list[str] | None
        if flags:
            label = [text_of(plain.get(name)) for name in flags]
        elif isinstance(value, list):
            label = [text_of(part).strip() for part in cast(list[object], value)]
            label = label if all(label) else None
        else:
            label = text_of(value)
        example = make(number, text_of(text), pair, label)
        if example is not None:
            yield example


def dump(
    items: Iterable[Example | Prediction], format: Format, beside: Beside[JsonObject] | None = None
) -> Iterator[str]:
    """Predictions also carry ``scores``, or ``entities`` with theirs."""
    details = format.details
    kept = ((item, (beside.of(item) if beside else None) or {}) for item in items)
    return dump_objects((_plain(item, details, row) for item, row in kept), details.get("container", "lines"))


def _plain(item: Example | Prediction, details: dict[str, Any], row: JsonObject) -> JsonObject:
    plain: JsonObject = {**row, details["text"]: item.text}
    if details.get("text_pair") is not None:
        plain[details["text_pair"]] = item.text_pair
    if details.get("label_names") and fits_columns(item, details):
        cells = zip(details["label_names"], flag_cells(item, details, "json"), strict=True)
        plain.update({name: int(cell) for name, cell in cells if cell})
    elif item.labels is not None:
        plain[details.get("label") or "label"] = _label_value(item.labels, details)
    if isinstance(item, Prediction):
        told = item.to_json()
        plain.update({key: told[key] for key in ("entities", "scores") if key in told})
    return plain


def _label_value(labels: tuple[str, ...], details: dict[str, Any]) -> object:
    if details.get("label_type") == "list" or details.get("label_lists"):
        return list(labels)
    classes = details.get("classes")
    if separator := details.get("label_separator"):
        return str(separator).join(labels)
    if len(labels) != 1:
        return list(labels)
    label = labels[0]
    if classes and label in classes:
        label = str(classes.index(label))
    if details.get("label_type") == "number" and label.lstrip("-").isdecimal() and str(int(label)) == label:
        return int(label)
    return label


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _flat(value: object) -> object:
    """A list of labels counts as its text when columns are chosen."""
    if isinstance(value, list):
        return "|".join(text_of(part) for part in cast(list[object], value))
    return value


RECORDS = TextFormat("json", recognize, parse, dump, object_rows)
