"""The label list does not match the data

## What it says

Labels of the data are missing in the script's list (or `num_labels` is smaller than the number of classes).

## Why

The list was copied from a post. A missing type raises a KeyError, or its entities are dropped silently.

## How to know

The finding names the labels that are missing and those that the data does not have.

## How to fix

Build the list from the data: `["O"] + [f"{p}-{t}" for t in types for p in "BI"]`; fitune does.

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
