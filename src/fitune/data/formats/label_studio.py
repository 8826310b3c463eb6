"""Label Studio's JSON export: an array of tasks with ``data`` and ``annotations[].result[].value``.

Of several annotations of a task the first that was not cancelled counts. Predictions are written as ``predictions``,
which Label Studio shows as pre-annotations; a file that holds nothing else is read by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, cast

from fitune.data.formats.base import Sample, TextFormat
from fitune.data.formats.beside import Beside, Place
from fitune.data.formats.json_objects import (
    Container,
    JsonObject,
    dump_objects,
    iterate_objects,
    object_rows,
    sample_objects,
)
from fitune.data.formats.layouts import TEXT_NAMES
from fitune.data.formats.offsets import BadSpan, Convention, Stored, detect_convention, label_name, place, store
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction

_KINDS = ("annotations", "completions", "predictions")


def recognize(sample: Sample) -> Format | None:
    found = sample_objects(sample)
    if found is None:
        return None
    container, objects = found
    tasks = [o for o in objects if isinstance(o.get("data"), dict) and any(isinstance(o.get(k), list) for k in _KINDS)]
    if len(tasks) * 2 <= len(objects):
        return None
    keys = Counter(key for task in tasks for key, value in task["data"].items() if isinstance(value, str))
    if not keys:
        return None
    wanted = sample.columns.text
    text_key = wanted if wanted in keys else next((k for k in TEXT_NAMES if k in keys), keys.most_common(1)[0][0])
    used = Counter(kind for task in tasks for kind in _KINDS if task.get(kind))
    kind = next((k for k in _KINDS if used[k]), "annotations")
    results = [(task["data"].get(text_key), _results(task, kind) or []) for task in tasks]
    choices = sum("choices" in _value(result) for _text, found in results for result in found)
    spans = sum("start" in _value(result) for _text, found in results for result in found)
    task_name = "classification" if choices > spans or sample.task == "classification" else "ner"
    rows = ((text, _stored(found)) for text, found in results if isinstance(text, str))
    convention, evidence = detect_convention(rows)
    details: dict[str, Any] = {"container": container, "text": text_key, "kind": kind, **convention.details()}
    for _text, found in results:
        for result in found:
            details.setdefault("from_name", str(result.get("from_name", "label")))
            details.setdefault("to_name", str(result.get("to_name", "text")))
    told = _(
        'Label Studio\'s export: text in data "{text}", {spans} spans and {choices} choices in "{kind}"; {evidence}',
        text=text_key,
        spans=spans,
        choices=choices,
        kind=kind,
        evidence=evidence,
    )
    return Format(name="label-studio", task=task_name, details=details, evidence=told)


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    details = format.details
    convention = Convention.from_details(details)
    kind, text_key = str(details["kind"]), str(details["text"])
    container: Container = details.get("container", "array")
    for number, task in iterate_objects(lines, container, tally):
        data = task.get("data")
        text = cast(JsonObject, data).get(text_key) if isinstance(data, dict) else None
        if not isinstance(text, str) or not text:
            tally.skip(number, _('"{key}" is missing or no text', key="data." + text_key))
            continue
        source = tally.at(number)
        results = _results(task, kind)
        if results is None:
            if tally.labelled:
                tally.skip(number, _("the task has not been annotated"))
            else:
                yield Example(text, source=source)
            continue
        kinds = task.get(kind)
        if isinstance(kinds, list) and len(cast(list[object], kinds)) > 1:
            tally.note(_("tasks with several annotations, of which the first was taken"))
        if format.task == "classification":
            chosen = [c for result in results for c in _strings(_value(result).get("choices"))]
            yield Example(text, None, tuple(dict.fromkeys(chosen)), source=source)
            continue
        try:
            yield Example(text, place(text, _stored(results), convention, tally), source=source)
        except BadSpan as error:
            tally.skip(number, str(error))


def rows(lines: Iterable[str], format: Format) -> Iterator[tuple[Place, JsonObject]]:
    return object_rows(lines, format, "array")


def _data(task: JsonObject) -> JsonObject:
    data = task.get("data")
    return cast(JsonObject, data) if isinstance(data, dict) else {}


def dump(
    items: Iterable[Example | Prediction], format: Format, beside: Beside[JsonObject] | None = None
) -> Iterator[str]:
    """Examples as annotations, predictions as predictions, beside the annotations that were there."""
    kept = ((item, (beside.of(item) if beside else None) or {}) for item in items)
    return dump_objects((_task(item, format, row) for item, row in kept), format.details.get("container", "array"))


def _task(item: Example | Prediction, format: Format, row: JsonObject) -> JsonObject:
    details = format.details
    convention = Convention.from_details(details)
    ends = {"from_name": details.get("from_name", "label"), "to_name": details.get("to_name", "text")}
    results: list[JsonObject] = []
    for span in item.spans or ():
        start, end = store(item.text, span, convention)
        value = {"start": start, "end": end, "text": item.text[span.start : span.end], "labels": [span.label]}
        result: JsonObject = {**ends, "type": "labels", "value": value}
        results.append(result if span.score is None else {**result, "score": span.score})
    if item.labels is not None and item.labels:
        results.append({**ends, "type": "choices", "value": {"choices": list(item.labels)}})
    task: JsonObject = {**row, "data": {**_data(row), details["text"]: item.text}}
    labelled = item.spans is not None or item.labels is not None
    if isinstance(item, Prediction):
        told: JsonObject = {"result": results}
        if item.scores is not None and item.labels:
            told["score"] = min(item.scores.get(label, 0.0) for label in item.labels)
        return {"annotations": [], **task, "predictions": [told] if labelled else []}
    kind = str(details.get("kind", "annotations"))
    return {**task, kind: [{"result": results}] if labelled else []}


def _results(task: JsonObject, kind: str) -> list[JsonObject] | None:
    """The results of the first annotation that counts; None when there is none."""
    annotations = task.get(kind)
    if not isinstance(annotations, list):
        return None
    for annotation in cast(list[object], annotations):
        if isinstance(annotation, dict):
            plain = cast(JsonObject, annotation)
            result = plain.get("result")
            if isinstance(result, list) and not plain.get("was_cancelled"):
                return [cast(JsonObject, r) for r in cast(list[object], result) if isinstance(r, dict)]
    return None


def _value(result: JsonObject) -> JsonObject:
    value = result.get("value")
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def _stored(results: Iterable[JsonObject]) -> list[Stored]:
    found: list[Stored] = []
    for result in results:
        value = _value(result)
        if "start" not in value:
            continue
        mention = value.get("text")
        kind = str(result.get("type", "labels"))
        labels = _strings(value.get(kind)) or _strings(value.get("labels")) or [""]
        told = mention if isinstance(mention, str) and mention else None
        found.extend(Stored(value.get("start"), value.get("end"), label, told) for label in labels)
    return found


def _strings(value: object) -> list[str]:
    if not isinstance(value, list):
        return []
    return [name for part in cast(list[object], value) if (name := label_name(part))]


LABEL_STUDIO = TextFormat("label-studio", recognize, parse, dump, rows)
