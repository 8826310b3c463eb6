"""O is labelled -100: the model never learns what is not an entity

## What it says

The labels start as `[-100] * n`, and only B- and I- are filled in.

## Why

-100 means "leave this token out of the loss". Tokens outside entities then teach nothing, and the model calls
everything an entity, while the evaluation loss looks healthy (entity F1 2.6 instead of 20.5, same small model).

## How to know

Count the labels: there is no O among them.

## How to fix

Start with O and keep -100 for special tokens alone: `[-100 if word is None else label2id["O"] for word in
word_ids]`.

## How safe

Unsafe in the word's sense: something else is learned, namely the task.

## Sources

https://huggingface.co/docs/transformers/tasks/token_classification ; the figures: measured for fitune on
CLUENER2020
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.script import Script, is_number, name_of, text_of
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "error"
SAFETY = "unsafe"


def check(script: Script) -> Iterator[Symptom]:
    """``x = [-100] * n`` that only entity labels overwrite, and ``-100 if tag == "O" else ...``."""
    for node in script.walk(ast.Assign):
        if isinstance(node, ast.Assign) and _all_ignored(node.value) and isinstance(node.targets[0], ast.Name):
            yield from _filled(script, node, node.targets[0].id)
    for node in script.walk(ast.IfExp):
        if isinstance(node, ast.IfExp) and is_number(node.body, -100) and _tests_for_outside(node.test):
            yield script.symptom(node, edits=[script.replace(node, script.source(node.orelse))])
        elif isinstance(node, ast.IfExp) and is_number(node.body, -100) and isinstance(node.test, ast.BoolOp):
            outside = [part for part in node.test.values if _tests_for_outside(part)]
            kept = [part for part in node.test.values if part not in outside]
            if outside and kept and isinstance(node.test.op, ast.Or):
                text = " or ".join(script.source(part) for part in kept)
                yield script.symptom(outside[0], edits=[script.replace(node.test, text)])


def _all_ignored(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and isinstance(node.left, ast.List)
        and len(node.left.elts) == 1
        and is_number(node.left.elts[0], -100)
    )


def _tests_for_outside(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and text_of(node.comparators[0]) == "O"


def _filled(script: Script, node: ast.Assign, name: str) -> Iterator[Symptom]:
    function = script.function(node)
    writes = [
        other
        for other in ast.walk(function)
        if isinstance(other, ast.Assign)
        and isinstance(other.targets[0], ast.Subscript)
        and isinstance(other.targets[0].value, ast.Name)
        and other.targets[0].value.id == name
    ]
    written = " ".join(script.source(write.value) for write in writes)
    if not writes or ("B-" not in written and "I-" not in written) or '"O"' in written or "'O'" in written:
        return
    yield script.symptom(node, *writes[:1], edits=_edit(script, node, writes[0]))


def _edit(script: Script, node: ast.Assign, write: ast.Assign) -> list[Edit]:
    """Start with O: through word_ids where the length comes from there, else through the special-tokens mask."""
    value, product = write.value, node.value
    if not isinstance(value, ast.Subscript) or not isinstance(product, ast.BinOp):
        return []
    outside = f'{script.source(value.value)}["O"]'
    size = product.right
    counted = size.args[0] if isinstance(size, ast.Call) and name_of(size.func) == "len" and size.args else None
    if counted is None:
        return []
    origin = script.resolve(counted)
    if isinstance(origin, ast.Call) and name_of(origin.func) == "word_ids":
        text = f"[-100 if word is None else {outside} for word in {script.source(counted)}]"
    elif not re.search(r"ids\b|offset|token|enc", script.source(counted)):
        # One label for each character or word: nothing special is among them.
        return [script.replace(product, f"[{outside}] * {script.source(size)}")]
    elif script.tokenizer:
        mask = f"{script.tokenizer}.get_special_tokens_mask({script.source(counted)}, already_has_special_tokens=True)"
        text = f"[-100 if special else {outside} for special in {mask}]"
    else:
        return []
    return [script.replace(product, text)]
