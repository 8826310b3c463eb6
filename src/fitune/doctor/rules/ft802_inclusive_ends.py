"""The data's ends are inclusive, and the script leaves them out

## What it says

A span's end is used as if it were excluded (`end - 1`, `range(start, end)`), while the file includes it.

## Why

CLUENER counts [start, end] with the last character inside. Every entity then loses its last character, and
one-character entities vanish (on CLUENER's dev only 193 of 3,072 entities keep their borders).

## How to know

`text[start:end + 1]` is the mention, `text[start:end]` lacks a character.

## How to fix

Use the end as it is: `char_to_token(i, end)`, `range(start, end + 1)`, `text[start:end + 1]`. fitune's readers
find out which convention a file has.

## How safe

Unsafe in the word's sense: the right spans are learned.

## Sources

https://github.com/CLUEbenchmark/CLUENER2020 ; the figures: measured for fitune
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Script, is_number, name_of
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "unsafe"


def check(script: Script) -> Iterator[Symptom]:
    """Ends of a loop over pairs, where the data is known to include them."""
    if not script.data.inclusive_ends:
        return
    for loop in script.walk(ast.For, ast.comprehension):
        target = getattr(loop, "target", None)
        if (
            not isinstance(target, ast.Tuple)
            or len(target.elts) != 2
            or not all(isinstance(e, ast.Name) for e in target.elts)
        ):
            continue
        end = target.elts[1]
        if isinstance(end, ast.Name) and end.id in {"end", "e", "end_idx", "end_index", "end_pos", "stop", "ed", "j"}:
            region = loop if isinstance(loop, ast.For) else script.parent(loop) or loop
            yield from _uses(script, region, end.id)


def _is_end(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _uses(script: Script, region: ast.AST, end: str) -> Iterator[Symptom]:
    for node in ast.walk(region):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Sub)
            and _is_end(node.left, end)
            and is_number(node.right, 1)
        ):
            yield script.symptom(node, edits=[script.replace(node, end)])
        elif (
            isinstance(node, ast.Call)
            and name_of(node.func) == "range"
            and len(node.args) == 2
            and _is_end(node.args[1], end)
        ):
            yield script.symptom(node, edits=[script.replace(node.args[1], f"{end} + 1")])
        elif isinstance(node, ast.Slice) and _is_end(node.upper, end) and node.upper is not None:
            yield script.symptom(node.upper, edits=[script.replace(node.upper, f"{end} + 1")])
