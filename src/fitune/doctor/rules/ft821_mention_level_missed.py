"""The labels have one level more than the script expects

## What it says

The file says type -> mention -> spans, and the script loops over type -> spans.

## Why

CLUENER2020 stores `{"name": {"叶老桂": [[9, 11]]}}`; looping over the inner dictionary gives mentions (strings),
not pairs.

## How to know

Print one row of the file.

## How to fix

Loop over the values: `for spans in mentions.values(): for start, end in spans`.

## How safe

Safe.

## Sources

https://github.com/CLUEbenchmark/CLUENER2020
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Script, name_of
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"


def check(script: Script) -> Iterator[Symptom]:
    """``for kind, spans in label.items(): for start, end in spans`` where the data nests deeper."""
    if not script.data.nested_mentions:
        return
    for outer in script.walk(ast.For):
        if (
            not isinstance(outer, ast.For)
            or not isinstance(outer.iter, ast.Call)
            or name_of(outer.iter.func) != "items"
        ):
            continue
        if _is_inner(script, outer):
            continue
        target = outer.target
        value = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
        for inner in ast.walk(outer):
            if (
                isinstance(inner, ast.For)
                and isinstance(value, ast.Name)
                and isinstance(inner.iter, ast.Name)
                and inner.iter.id == value.id
                and isinstance(inner.target, ast.Tuple)
            ):
                text = f"[span for spans in {value.id}.values() for span in spans]"
                yield script.symptom(inner, edits=[script.replace(inner.iter, text)])


def _is_inner(script: Script, loop: ast.For) -> bool:
    """Whether it loops over the mentions already: over what an outer ``.items()`` gives."""
    owner = (
        loop.iter.func.value if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Attribute) else None
    )
    around = script.parent(loop)
    while isinstance(owner, ast.Name) and around is not None:
        if isinstance(around, ast.For) and any(
            isinstance(name, ast.Name) and name.id == owner.id for name in ast.walk(around.target)
        ):
            return True
        around = script.parent(around)
    return False
