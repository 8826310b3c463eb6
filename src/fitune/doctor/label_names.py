"""Where a script keeps the names of its labels: for keywords that tell them to the model."""

from __future__ import annotations

import ast

from fitune.doctor.script import Call, Script, name_of, text_of


def keywords_for_names(script: Script, call: Call) -> str | None:
    """``id2label=..., label2id=...`` from what the script has before this call; None: the names are not there."""
    count = call.value("num_labels")
    if count is None:
        return None
    if script.assigned("id2label") is not None and script.assigned("label2id") is not None:
        return "id2label=id2label, label2id=label2id"
    resolved = script.resolve(count)
    if isinstance(resolved, ast.Call) and name_of(resolved.func) == "len" and len(resolved.args) == 1:
        return _from_holder(script, resolved.args[0], call.node)
    if isinstance(resolved, ast.Attribute) and resolved.attr == "num_classes":
        return _from_list(f"{script.source(resolved.value)}.names")
    if isinstance(resolved, ast.Constant) and isinstance(resolved.value, int):
        for holder in _holders(script, call.node):
            value = script.assigned(holder.id)
            if _size(value) == resolved.value and (found := _from_holder(script, holder, call.node)):
                return found
    return None


def _holders(script: Script, before: ast.AST) -> list[ast.Name]:
    """Names that are given a written-out list or table above a node, at the top of the script or in its function."""
    places = {script.tree, script.function(before)}
    return [
        target
        for node in script.walk(ast.Assign)
        if isinstance(node, ast.Assign)
        and node.lineno < before.lineno  # type: ignore[attr-defined]
        and script.function(node) in places
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def _size(value: ast.AST | None) -> int | None:
    if isinstance(value, ast.List | ast.Tuple) and value.elts and all(text_of(item) for item in value.elts):
        return len(value.elts)
    if isinstance(value, ast.Dict) and value.keys:
        keys, values = [text_of(key) for key in value.keys], [text_of(item) for item in value.values]
        return len(keys) if all(keys) or all(values) else None
    return None


def _from_holder(script: Script, holder: ast.AST, before: ast.AST) -> str | None:
    """From a list of names, a table name -> number, or a table number -> name."""
    text = script.source(holder)
    if not isinstance(holder, ast.Name):
        return _from_list(text) if isinstance(holder, ast.Attribute) and holder.attr == "names" else None
    if all(name.id != holder.id for name in _holders(script, before)):
        return None
    value = script.assigned(holder.id)
    keys: list[ast.expr] = []
    if isinstance(value, ast.Dict):
        keys = [key for key in value.keys if key is not None]
    elif isinstance(value, ast.DictComp):
        keys = [value.key]
    if keys:
        counted = isinstance(value, ast.DictComp) and _is_count(value, keys[0])
        if counted or all(isinstance(key, ast.Constant) and isinstance(key.value, int) for key in keys):
            return f"id2label={text}, label2id={{name: i for i, name in {text}.items()}}"
        return f"id2label={{i: name for name, i in {text}.items()}}, label2id={text}"
    if isinstance(value, ast.Call) and name_of(value.func) == "dict" and value.args:
        return f"id2label={text}, label2id={{name: i for i, name in {text}.items()}}" if _enumerates(value) else None
    # The order of a set is another one in each run.
    unordered = isinstance(value, ast.Set | ast.SetComp) or (
        isinstance(value, ast.Call) and name_of(value.func) == "set"
    )
    return None if unordered else _from_list(text)


def _is_count(table: ast.DictComp, key: ast.expr) -> bool:
    """``{i: name for i, name in enumerate(names)}``."""
    first = table.generators[0]
    if isinstance(first.target, ast.Tuple) and isinstance(key, ast.Name):
        counter = first.target.elts[0]
        return (
            isinstance(first.iter, ast.Call)
            and name_of(first.iter.func) == "enumerate"
            and (isinstance(counter, ast.Name) and counter.id == key.id)
        )
    return False


def _enumerates(value: ast.Call) -> bool:
    return isinstance(value.args[0], ast.Call) and name_of(value.args[0].func) == "enumerate"


def _from_list(text: str) -> str:
    return f"id2label=dict(enumerate({text})), label2id={{name: i for i, name in enumerate({text})}}"
