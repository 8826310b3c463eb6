"""The split does not keep the shares of the classes

## What it says

`train_test_split` without `stratify`.

## Why

With rare classes, chance gives one side too few of them, and the score jumps from split to split.

## How to know

Count the labels on both sides.

## How to fix

Add `stratify=labels` (datasets: `stratify_by_column="label"`).

## How safe

Unsafe: other rows are trained on.

## Sources

https://scikit-learn.org/stable/modules/generated/sklearn.model_selection.train_test_split.html
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Call, Script, name_of
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "note"
SAFETY = "unsafe"


def check(script: Script) -> Iterator[Symptom]:
    """train_test_split in a classification script."""
    if script.is_token_task:
        return
    for call in script.calls("train_test_split"):
        if call.keyword("stratify") or call.keyword("stratify_by_column") or call.keyword("shuffle"):
            continue
        yield script.symptom(call.node, edits=_stratify(script, call))


def _stratify(script: Script, call: Call) -> list[Edit]:
    """What to stratify by, where the text shows it: the second list, or the label column of a data frame or rows."""
    if len(call.node.args) == 2:
        return [script.add_keyword(call, f"stratify={script.source(call.node.args[1])}")]
    if len(call.node.args) != 1 or not isinstance(call.node.args[0], ast.Name):
        return []
    name = call.node.args[0].id
    column = script.data.label_column or next(
        (word for word in ("label", "labels") if f'"{word}"' in script.text or f"'{word}'" in script.text), None
    )
    if column is None:
        return []
    origin = script.assigned(name)
    if isinstance(origin, ast.Call) and name_of(origin.func).startswith("read_"):
        return [script.add_keyword(call, f'stratify={name}["{column}"]')]
    return [script.add_keyword(call, f'stratify=[row["{column}"] for row in {name}]')]
