"""The split is not shuffled

## What it says

The first rows train, the last ones evaluate (`rows[:n]`, `rows[n:]`, or `shuffle=False`).

## Why

Many files are sorted by class or by date (waimai_10k has all positive rows first): one side then lacks a class.

## How to know

Count the labels on both sides.

## How to fix

Shuffle with a fixed seed before slicing, or use `train_test_split(..., stratify=labels, random_state=42)`.

## How safe

Unsafe: other rows are trained on.

## Sources

https://scikit-learn.org/stable/modules/generated/sklearn.model_selection.train_test_split.html
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.script import Script, name_of, seed_keyword
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "warning"
SAFETY = "unsafe"

SHUFFLES = r"shuffle\(|\.sample\(|permutation\(|random_split|StratifiedShuffleSplit|KFold\(.*shuffle=True"


def check(script: Script) -> Iterator[Symptom]:
    """shuffle=False, and two slices of one list that meet."""
    for call in script.calls("train_test_split"):
        keyword = call.keyword("shuffle")
        if keyword and isinstance(keyword.value, ast.Constant) and keyword.value.value is False:
            seeded = call.keyword("random_state") or call.keyword("seed")
            edit = script.replace(keyword, f"{seed_keyword(call)}=42")
            yield script.symptom(keyword, edits=[script.delete_keyword(call, keyword) if seeded else edit])
    if re.search(SHUFFLES, script.text):
        return
    heads: dict[tuple[str, str], ast.Assign] = {}
    for node, value in _assigned(script):
        if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Slice):
            continue
        owner, piece = value.value, value.slice
        owner = owner.value if isinstance(owner, ast.Attribute) and owner.attr in {"iloc", "loc"} else owner
        if not isinstance(owner, ast.Name):
            continue
        if piece.lower is None and piece.upper is not None:
            heads[owner.id, script.source(piece.upper)] = node
        elif (
            piece.upper is None
            and piece.lower is not None
            and (head := heads.get((owner.id, script.source(piece.lower))))
        ):
            yield script.symptom(*dict.fromkeys((head, node)), edits=_shuffle(script, head, owner.id))


def _assigned(script: Script) -> Iterator[tuple[ast.Assign, ast.expr]]:
    """(statement, value), also of ``train, dev = rows[:n], rows[n:]``."""
    for node in script.walk(ast.Assign):
        if isinstance(node, ast.Assign):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            yield from ((node, value) for value in values)


def _shuffle(script: Script, head: ast.Assign, name: str) -> list[Edit]:
    origin = script.assigned(name)
    if isinstance(origin, ast.Call) and name_of(origin.func).startswith("read_"):
        return [script.insert_before(head, f"{name} = {name}.sample(frac=1, random_state=42)")]
    return [
        script.insert_before(head, f"random.Random(42).shuffle({name})"),
        *script.add_import("import random", "random"),
    ]
