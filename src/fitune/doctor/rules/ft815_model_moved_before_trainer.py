"""The model is moved to the card before the Trainer does it

## What it says

`model.to(device)` or `model.cuda()` in a script with a Trainer, also behind `from_pretrained(...)`.

## Why

The Trainer moves the model itself; done by hand it takes memory before it is needed, and the wrong card with
several processes.

## How to know

The line is not needed: without it everything works.

## How to fix

Delete the line.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/main_classes/trainer
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Call, Script, name_of, text_of
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "note"
SAFETY = "safe"

_TRAINERS = ("Trainer", "Seq2SeqTrainer", "SFTTrainer")


def check(script: Script) -> Iterator[Symptom]:
    """The model that a Trainer is given, moved before: where it is made, in a statement, or in a function."""
    seen: set[ast.Call] = set()
    for trainer in script.calls(*_TRAINERS):
        for given in (_model(trainer), trainer.value("model_init")):
            for moved in _moves_of(script, given, trainer.node, depth=0):
                if moved not in seen:
                    seen.add(moved)
                    yield script.symptom(moved, edits=[_edit(script, moved)])


def _model(trainer: Call) -> ast.expr | None:
    first = trainer.node.args[0] if trainer.node.args and not isinstance(trainer.node.args[0], ast.Starred) else None
    return trainer.value("model") or first


def _is_move(node: ast.AST | None) -> bool:
    """``x.cuda()`` or ``x.to(a device)``; ``x.to(torch.bfloat16)`` is none."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "cuda":
        return True
    if node.func.attr != "to":
        return False
    place = next((keyword.value for keyword in node.keywords if keyword.arg == "device"), None)
    place = place or (node.args[0] if node.args else None)
    if isinstance(place, ast.Call) and name_of(place.func) == "device":
        return True
    if (text := text_of(place)) is not None:
        return text.startswith(("cuda", "mps", "npu", "xpu"))
    return place is not None and "dev" in name_of(place).lower()


def _moves_of(script: Script, given: ast.AST | None, before: ast.AST, *, depth: int) -> Iterator[ast.Call]:
    """The calls that move what an expression gives; ``before``: only what is written above it counts."""
    if given is None or depth > 3:
        return
    if isinstance(given, ast.Lambda):
        given = given.body
    while isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr in {"to", "cuda"}:
        if _is_move(given):
            yield given
        given = given.func.value
    if isinstance(given, ast.Name) and (function := _function(script, given.id)):
        yield from _moves_in(script, function, depth)
    elif isinstance(given, ast.Name | ast.Attribute):
        yield from _moves_of_name(script, given, before, depth)
    elif (
        isinstance(given, ast.Call)
        and isinstance(given.func, ast.Name)
        and (function := _function(script, given.func.id))
    ):
        yield from _moves_in(script, function, depth)


def _function(script: Script, name: str) -> ast.FunctionDef | None:
    found = (node for node in script.walk(ast.FunctionDef) if isinstance(node, ast.FunctionDef) and node.name == name)
    return next(found, None)


def _moves_in(script: Script, function: ast.FunctionDef, depth: int) -> Iterator[ast.Call]:
    """Of a function that makes the model: what it returns."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None and script.function(node) is function:
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for value in values:
                yield from _moves_of(script, value, node, depth=depth + 1)


def _moves_of_name(script: Script, name: ast.Name | ast.Attribute, before: ast.AST, depth: int) -> Iterator[ast.Call]:
    """``model.to(device)`` and ``model = ....to(device)`` above, in the same function or at the top of the script."""
    text = script.source(name)
    # An attribute of an object is made in one method and used in another.
    places = {script.tree, script.function(before)} if isinstance(name, ast.Name) else None
    for node in script.walk(ast.Expr, ast.Assign):
        if places is not None and (script.function(node) not in places or node.lineno >= before.lineno):  # type: ignore[attr-defined]
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _is_move(node.value):
            function = node.value.func
            if isinstance(function, ast.Attribute) and script.source(function.value) == text:
                yield node.value
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and any(script.source(target) == text for target in node.targets)
        ):
            yield from _moves_of(script, node.value, node, depth=depth + 1)


def _edit(script: Script, moved: ast.Call) -> Edit:
    parent, function = script.parent(moved), moved.func
    owner = script.source(function.value) if isinstance(function, ast.Attribute) else ""
    if isinstance(parent, ast.Expr):
        return script.delete_statement(parent)
    if isinstance(parent, ast.Assign) and [script.source(target) for target in parent.targets] == [owner]:
        return script.delete_statement(parent)
    end = script.end(function.value) if isinstance(function, ast.Attribute) else script.end(moved)
    return Edit(end, script.end(moved), "")
