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
import re
from collections.abc import Iterator

from fitune.doctor.script import Call, Script, name_of
from fitune.doctor.symptom import Edit, Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "note"
SAFETY = "unsafe"


def check(script: Script) -> Iterator[Symptom]:
    """train_test_split in a classification script."""
    if script.is_token_task:
        return
    for call in script.calls("train_test_split"):
        if call.keyword("stratify") or call.keyword("stratify_by_column") or call.keyword("shuffle"):
            continue
        edits = _stratify(script, call)
        yield script.symptom(call.node, edits=edits, fixes=() if edits else (_by_hand(),))


def _by_hand() -> Fix:
    text = _(
        "the script does not show which values are the classes, so this is left to you: stratify=labels with as many "
        'values as rows (datasets: class_encode_column("label"), then stratify_by_column="label")'
    )
    return Fix(safety="unsafe", text=text)


def _stratify(script: Script, call: Call) -> list[Edit]:
    """What to stratify by, where the text shows it: a list of labels, or the label column of a table or of rows."""
    arguments, function = call.node.args, call.node.func
    if isinstance(function, ast.Attribute) and not (
        isinstance(function.value, ast.Name) and function.value.id in {"model_selection", "sklearn"}
    ):
        return _stratify_dataset(script, call, function.value)
    if len(arguments) >= 2:
        named = [node for node in arguments[1:] if re.search(r"label|tag|target|\by\b|标签", script.source(node), re.I)]
        wanted = named[0] if named else arguments[1] if len(arguments) == 2 else None
        return [script.add_keyword(call, f"stratify={script.source(wanted)}")] if wanted is not None else []
    if len(arguments) != 1:
        return []
    if zipped := _zipped(script.resolve(arguments[0])):
        return [script.add_keyword(call, f"stratify={script.source(zipped[-1])}")]
    column = _column(script)
    if not isinstance(arguments[0], ast.Name) or column is None:
        return []
    name, origin = arguments[0].id, script.assigned(arguments[0].id)
    if isinstance(origin, ast.Call) and name_of(origin.func).startswith("read_"):
        return [script.add_keyword(call, f'stratify={name}["{column}"]')]
    return [script.add_keyword(call, f'stratify=[row["{column}"] for row in {name}]')]


def _stratify_dataset(script: Script, call: Call, owner: ast.expr) -> list[Edit]:
    """datasets' own split wants a column of classes; one of its own beside the label keeps the script's numbers."""
    column = _column(script)
    if column is None or any(isinstance(node, ast.Call) for node in ast.walk(owner)):
        return []
    if re.search(rf"(?:cast_column|class_encode_column)\(\s*['\"]{re.escape(column)}['\"]", script.text):
        return [script.add_keyword(call, f'stratify_by_column="{column}"')]
    rows = script.source(owner)
    with_classes = f'{rows}.add_column("classes", list({rows}["{column}"])).class_encode_column("classes")'
    end = script.end(call.node)
    return [
        script.replace(owner, with_classes),
        script.add_keyword(call, 'stratify_by_column="classes"'),
        Edit(end, end, '.remove_columns("classes")'),
    ]


def _column(script: Script) -> str | None:
    words = ("label", "labels", "标签", "类别")
    return script.data.label_column or next(
        (w for w in words if f'"{w}"' in script.text or f"'{w}'" in script.text), None
    )


def _zipped(node: ast.AST | None) -> list[ast.expr]:
    """The lists of ``list(zip(texts, labels))``."""
    if isinstance(node, ast.Call) and name_of(node.func) == "list" and len(node.args) == 1:
        node = node.args[0]
    return node.args if isinstance(node, ast.Call) and name_of(node.func) == "zip" else []
