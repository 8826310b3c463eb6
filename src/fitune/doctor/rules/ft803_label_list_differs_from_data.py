"""The label list does not match the data

## What it says

Labels of the data are missing in the script's list (or `num_labels` is smaller than the number of classes).

## Why

The list was copied from a post. A missing type raises a KeyError, or its entities are dropped silently.

## How to know

The finding names the labels that are missing and those that the data does not have.

## How to fix

Build the list from the data; fitune does. Entities: `["O"] + [f"{p}-{t}" for t in types for p in "BI"]`.
Classes: `names = sorted(set(labels))` and `num_labels=len(names)`.

## How safe

Unsafe in the word's sense: all labels are learned.

## Sources

https://github.com/CLUEbenchmark/CLUENER2020
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Script, text_of
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
SAFETY = "unsafe"


def check(script: Script) -> Iterator[Symptom]:
    """A literal list of B-/I- tags against the data's types; a literal num_labels against its classes."""
    yield from _tags(script)
    yield from _count(script)
    classes = script.data.classes
    for call in script.calls("from_pretrained"):
        number = script.resolve(call.value("num_labels"))
        if (
            classes
            and not script.is_token_task
            and isinstance(number, ast.Constant)
            and isinstance(number.value, int)
            and number.value < len(classes)
        ):
            title = _(
                "num_labels is {number}, and the data has {count} classes", number=number.value, count=len(classes)
            )
            yield script.symptom(number, edits=[script.replace(number, str(len(classes)))], title=title)


def _tags(script: Script) -> Iterator[Symptom]:
    wanted = script.data.entity_types
    if not wanted:
        return
    for node in script.walk(ast.List):
        if not isinstance(node, ast.List):
            continue
        tags = [text_of(element) or "" for element in node.elts]
        if "O" not in tags or not any(tag.startswith("B-") for tag in tags):
            continue
        have = {tag.split("-", 1)[1] for tag in tags if "-" in tag}
        missing, surplus = sorted(wanted - have), sorted(have - wanted)
        if missing:
            text = (
                "["
                + ", ".join(f'"{tag}"' for tag in ["O", *(f"{p}-{kind}" for kind in sorted(wanted) for p in "BI")])
                + "]"
            )
            title = _("The label list lacks {missing}", missing=", ".join(missing))
            if surplus:
                title = _(
                    "The label list lacks {missing} and has {surplus}, which the data does not",
                    missing=", ".join(missing),
                    surplus=", ".join(surplus),
                )
            yield script.symptom(node, edits=[script.replace(node, text)], title=title)


def _count(script: Script) -> Iterator[Symptom]:
    """A literal num_labels beside the one list of tags that the script has, or will have when the list is mended."""
    lists = [
        node
        for node in script.walk(ast.Assign)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.List)
        and isinstance(node.targets[0], ast.Name)
        and "O" in [text_of(element) for element in node.value.elts]
        and any((text_of(element) or "").startswith("B-") for element in node.value.elts)
    ]
    if len(lists) != 1 or not script.is_token_task or not isinstance(lists[0].value, ast.List):
        return
    tags = [text_of(element) or "" for element in lists[0].value.elts]
    lacks = script.data.entity_types - {tag.split("-", 1)[1] for tag in tags if "-" in tag}
    size = 1 + 2 * len(script.data.entity_types) if lacks else len(tags)
    for call in script.calls("from_pretrained"):
        number = call.value("num_labels")
        if isinstance(number, ast.Constant) and type(number.value) is int and number.value != size:
            edit = script.replace(number, f"len({script.source(lists[0].targets[0])})")
            title = _("num_labels is {number}, and the data has {count} classes", number=number.value, count=size)
            yield script.symptom(number, edits=[edit], title=title)
