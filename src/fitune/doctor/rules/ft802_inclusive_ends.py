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
import re
from collections.abc import Iterator
from itertools import pairwise

from fitune.doctor.script import Script, is_number, name_of, text_of
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "error"
SAFETY = "unsafe"

# Offsets of tokens, matches and windows have ends of their own, which are not the data's.
_NOT_SPANS = re.compile(r"offset|mapping|token|enc\b|match|finditer|zip\(|window|chunk|pred|decod|range\(|batch")
_START = re.compile(r"(?:start|begin)(?:_\w+)?$")
_END = re.compile(r"(?:end|stop)(?:_\w+)?$")

Pair = tuple[str, str, ast.AST]
"""The texts of a span's start and end, and where they mean that."""


def check(script: Script) -> Iterator[Symptom]:
    """Ends of spans, however they are named, where the data is known to include them."""
    if not script.data.inclusive_ends:
        return
    seen: set[ast.AST] = set()
    for start, end, region in _pairs(script):
        if _made_exclusive(script, region, end):
            continue
        for node, edits in _uses(script, region, start, end):
            if node not in seen:
                seen.add(node)
                yield script.symptom(node, edits=edits)


def _pairs(script: Script) -> Iterator[Pair]:
    # Where a list of spans is made with end + 1, later loops over it have exclusive ends.
    gathered = re.search(r"[(\[][^()\[\]\n]*\b(?:e|end|t|j|stop)\s*\+\s*1\s*[,)]", script.text)
    if gathered and not re.search(r"range\([^()]*\+\s*1\)", gathered[0] + ")"):
        return
    for loop in script.walk(ast.For, ast.comprehension):
        if isinstance(loop, ast.For | ast.comprehension) and not _NOT_SPANS.search(script.source(loop.iter)):
            region = loop if isinstance(loop, ast.For) else script.parent(loop) or loop
            for inner in ast.walk(loop.target):
                yield from _of_tuple(script, inner, region, loop.iter)
    for node in script.walk(ast.Assign):
        plain = isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call | ast.Tuple)
        if plain and isinstance(node, ast.Assign) and not _NOT_SPANS.search(script.source(node.value)):
            yield from _of_tuple(script, node.targets[0], script.function(node), node.value)
    yield from _subscripts(script)


def _of_tuple(script: Script, target: ast.AST, region: ast.AST, origin: ast.expr) -> Iterator[Pair]:
    if not isinstance(target, ast.Tuple) or not 2 <= len(target.elts) <= 4:
        return
    if isinstance(origin, ast.Call) and name_of(origin.func) in {"items", "enumerate"}:
        return
    names = [node.id if isinstance(node, ast.Name) else "" for node in target.elts]
    for first, second in pairwise(names):
        if first and second:
            yield first, second, region


def _subscripts(script: Script) -> Iterator[Pair]:
    """``span[0]`` and ``span[1]``, ``ent["start"]`` and ``ent["end"]``, and names that are given them."""
    named: dict[str, str] = {}
    for node in script.walk(ast.Assign):
        if isinstance(node, ast.Assign):
            targets, value = node.targets[0], node.value
            both = isinstance(targets, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(targets.elts, value.elts, strict=False) if both else [(targets, value)]  # type: ignore[union-attr]
            named.update({script.source(v): t.id for t, v in pairs if isinstance(t, ast.Name)})
    for node in script.walk(ast.Subscript):
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        owner, key = script.source(node.value), text_of(node.slice)
        if _NOT_SPANS.search(owner) or not (is_number(node.slice, 1) or (key is not None and _END.search(key))):
            continue
        starts = [
            script.source(other)
            for other in ast.walk(script.function(node))
            if isinstance(other, ast.Subscript)
            and script.source(other.value) == owner
            and (is_number(other.slice, 0) if key is None else _START.search(text_of(other.slice) or ""))
        ]
        for start in starts[:1]:
            end = script.source(node)
            yield start, end, script.function(node)
            yield named.get(start, start), named.get(end, end), script.function(node)


def _made_exclusive(script: Script, region: ast.AST, end: str) -> bool:
    """The end is moved by one, or is itself a place that is written (the E of B M E)."""
    for node in ast.walk(region):
        if isinstance(node, ast.AugAssign) and script.source(node.target) == end:
            return True
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if script.source(target) == end and re.search(r"\+\s*1", script.source(node.value)):
                    return True
                if isinstance(target, ast.Subscript) and script.source(target.slice) == end:
                    return True
    return False


def _uses(script: Script, region: ast.AST, start: str, end: str) -> Iterator[tuple[ast.AST, list[Edit]]]:
    def is_end(node: ast.AST | None) -> bool:
        return node is not None and hasattr(node, "lineno") and script.source(node) == end

    def begins(node: ast.AST | None) -> bool:
        return node is not None and re.fullmatch(rf"{re.escape(start)}(?:\s*\+\s*1)?", script.source(node)) is not None

    for node in ast.walk(region):
        if isinstance(node, ast.Call) and name_of(node.func) == "range" and len(node.args) >= 2:
            if begins(node.args[0]) and is_end(node.args[1]):
                yield node, [script.replace(node.args[1], f"{end} + 1")]
        elif isinstance(node, ast.Slice) and begins(node.lower) and is_end(node.upper) and node.upper is not None:
            yield node.upper, [script.replace(node.upper, f"{end} + 1"), *_lengths(script, node, start, end)]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and is_end(node.left):
            if is_number(node.right, 1) and re.search(r"char_to_token|\[", _around(script, node)):
                yield node, [script.replace(node, end)]
        elif isinstance(node, ast.Compare):
            yield from ((node, edits) for edits in _compared(script, node, start, end))


def _around(script: Script, node: ast.AST) -> str:
    parent = script.parent(node)
    return "[" if isinstance(parent, ast.Subscript) else script.source(parent) if isinstance(parent, ast.Call) else ""


def _lengths(script: Script, piece: ast.Slice, start: str, end: str) -> Iterator[Edit]:
    """``end - start`` of the same statement grows with the slice."""
    statement = script.statement(piece)
    for node in ast.walk(statement) if statement else ():
        if isinstance(node, ast.BinOp) and re.fullmatch(
            rf"{re.escape(end)}\s*-\s*{re.escape(start)}", script.source(node)
        ):
            yield script.replace(node, f"{end} + 1 - {start}")


def _compared(script: Script, node: ast.Compare, start: str, end: str) -> Iterator[list[Edit]]:
    """``start < i < end``, ``i >= start and i < end``; a token's own end, which is exclusive: ``te <= end``."""
    parent = script.parent(node)
    together = script.source(parent) if isinstance(parent, ast.BoolOp) else script.source(node)
    last, right = node.ops[-1], node.comparators[-1]
    left = node.comparators[-2] if len(node.comparators) > 1 else node.left
    if script.source(right) != end or not re.search(rf"(?<!\w){re.escape(start)}(?!\w)", together):
        return
    if isinstance(last, ast.Lt) and isinstance(left, ast.Name):
        yield [script.replace(right, f"{end} + 1")]
    elif isinstance(last, ast.LtE) and isinstance(left, ast.Name):
        of_token = re.search(rf"\w+\s*,\s*{left.id}\)?\s+in\s+[^\n]*offset", script.text)
        yield from [[script.replace(right, f"{end} + 1")]] if of_token and re.search(r">=|<=.*<=", together) else []
