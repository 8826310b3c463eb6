"""O is labelled -100: the model never learns what is not an entity

## What it says

The labels start as `[-100] * n` and only B- and I- are filled in, or a tag O (its number 0) is turned into -100.

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

_LABELS = re.compile(r"label|tag|gold|target|^ys?$|(?:^|_)ys?$|bio|ner", re.IGNORECASE)


def check(script: Script) -> Iterator[Symptom]:
    """Labels full of -100 that only entities overwrite, and every way to turn O into -100."""
    for node in script.walk(ast.Assign):
        if isinstance(node, ast.Assign) and _all_ignored(node.value) and isinstance(node.targets[0], ast.Name):
            yield from _filled(script, node, node.targets[0].id)
    for node in script.walk(ast.IfExp, ast.If):
        if isinstance(node, ast.IfExp):
            yield from _chosen(script, node)
        elif isinstance(node, ast.If):
            yield from _branched(script, node)
    yield from _mapped(script)
    yield from _masked(script)


def _all_ignored(node: ast.expr) -> bool:
    """``[-100] * n``, ``[-100 for _ in text]``, ``np.full(n, -100)``, ``torch.full((n,), -100)``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return isinstance(node.left, ast.List) and len(node.left.elts) == 1 and is_number(node.left.elts[0], -100)
    if isinstance(node, ast.ListComp):
        return is_number(node.elt, -100)
    return (
        isinstance(node, ast.Call)
        and name_of(node.func) in {"full", "full_like"}
        and any(is_number(value, -100) for value in [*node.args, *(keyword.value for keyword in node.keywords)])
    )


def _outside_number(script: Script, node: ast.AST) -> str | None:
    """The text of what is O's number there: 0 where O is the first label, ``label2id["O"]``, or a name for it."""
    if is_number(node, 0):
        return "0" if re.search(r"[\[(]\s*['\"]O['\"]\s*[,\])]|['\"]O['\"]\s*:\s*0\b", script.text) else None
    found = script.resolve(node)
    if isinstance(found, ast.Subscript) and text_of(found.slice) == "O":
        return script.source(node)
    return None


def _is_labels(node: ast.AST) -> bool:
    while isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return bool(_LABELS.search(node.slice.value))
        node = node.value
    return bool(_LABELS.search(name_of(node)))


def _outside(script: Script, node: ast.AST, *, unlike: bool = False) -> tuple[ast.expr, str | None] | None:
    """(what is compared, the text of O's number) of a test for O; ``unlike``: of a test for anything but O."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _outside(script, node.operand, unlike=not unlike)
    if isinstance(node, ast.Call) and name_of(node.func) == "startswith" and isinstance(node.func, ast.Attribute):
        return (node.func.value, None) if not unlike and node.args and text_of(node.args[0]) == "O" else None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    left, right = node.left, node.comparators[0]
    kinds = (ast.NotEq, ast.NotIn, ast.IsNot) if unlike else (ast.Eq, ast.In, ast.Is)
    if isinstance(right, ast.List | ast.Tuple | ast.Set) and len(right.elts) == 1:
        right = right.elts[0]
    if not isinstance(node.ops[0], kinds):
        return None
    for tag, other in ((right, left), (left, right)):
        if text_of(tag) == "O":
            return other, None
        number = _outside_number(script, tag)
        if number is not None and (number != "0" or _is_labels(other)):
            return other, number
    return None


def _parts(test: ast.expr, joint: type[ast.boolop]) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, joint) else [test]


def _without(script: Script, test: ast.expr, joint: type[ast.boolop], *, unlike: bool) -> tuple[ast.expr, str] | None:
    """(the part that asks for O, the test without it)."""
    parts = _parts(test, joint)
    asked = [part for part in parts if _outside(script, part, unlike=unlike)]
    word = " or " if joint is ast.Or else " and "
    return (asked[0], word.join(script.source(part) for part in parts if part not in asked)) if asked else None


def _chosen(script: Script, node: ast.IfExp) -> Iterator[Symptom]:
    """``-100 if tag == "O" else ...`` and ``... if tag != "O" else -100``."""
    if is_number(node.body, -100):
        found, value = _without(script, node.test, ast.Or, unlike=False), node.orelse
    elif is_number(node.orelse, -100):
        found, value = _without(script, node.test, ast.And, unlike=True), node.body
    else:
        return
    if found:
        asked, kept = found
        edit = script.replace(node.test, kept) if kept else script.replace(node, script.source(value))
        yield script.symptom(asked, edits=[edit])


def _ignoring(statements: list[ast.stmt]) -> ast.expr | None:
    """The -100 that these statements append, return, yield or assign."""
    for statement in statements:
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Call) and name_of(value.func) == "append" and value.args:
            value = value.args[0]
        if isinstance(value, ast.expr) and is_number(value, -100):
            return value
    return None


def _branched(script: Script, node: ast.If) -> Iterator[Symptom]:
    """``if tag == "O": ids.append(-100)``, and the other way round."""
    for statements, joint, unlike in ((node.body, ast.Or, False), (node.orelse, ast.And, True)):
        ignored = _ignoring(statements)
        found = _without(script, node.test, joint, unlike=unlike) if ignored is not None else None
        if ignored is None or found is None:
            continue
        asked, kept = found
        number = _number_for(script, node, asked, unlike=unlike)
        edits = [script.replace(node.test, kept)] if kept else [script.replace(ignored, number)] if number else []
        yield script.symptom(asked, edits=edits)


def _number_for(script: Script, near: ast.AST, asked: ast.expr, *, unlike: bool) -> str | None:
    """O's number where only a tag is compared: from the table that the function asks for that tag."""
    found = _outside(script, asked, unlike=unlike)
    if found is None or found[1] is not None:
        return found[1] if found else None
    tag = script.source(found[0])
    for node in ast.walk(script.function(near)):
        if isinstance(node, ast.Subscript) and script.source(node.slice) == tag:
            return f'{script.source(node.value)}["O"]'
    return None


def _mapped(script: Script) -> Iterator[Symptom]:
    """``{"O": -100, ...}``, ``label2id["O"] = -100``, ``label2id.get(tag, -100)`` of a table without O."""
    for node in script.walk(ast.Dict, ast.Assign, ast.Call):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None and text_of(key) == "O" and is_number(value, -100):
                    yield script.symptom(key)
        elif isinstance(node, ast.Assign) and is_number(node.value, -100):
            target = node.targets[0]
            if isinstance(target, ast.Subscript) and text_of(target.slice) == "O":
                yield script.symptom(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            table = script.resolve(node.func.value)
            tags = [text_of(key) or "" for key in table.keys if key] if isinstance(table, ast.Dict) else []
            entities = "O" not in tags and any(re.match(r"[BISEM]-", tag) for tag in tags)
            if entities and len(node.args) == 2 and is_number(node.args[1], -100):
                yield script.symptom(node)


def _masked(script: Script) -> Iterator[Symptom]:
    """``labels[labels == 0] = -100``, ``np.where(labels == 0, -100, labels)``, ``labels.masked_fill(...)``."""
    for node in script.walk(ast.Assign, ast.Call):
        test: ast.AST | None = None
        if isinstance(node, ast.Assign) and is_number(node.value, -100) and isinstance(node.targets[0], ast.Subscript):
            test = node.targets[0].slice
        elif isinstance(node, ast.Call) and node.args and any(is_number(value, -100) for value in node.args[1:2]):
            test = node.args[0] if name_of(node.func) in {"where", "masked_fill", "masked_fill_"} else None
        if test is None or not _outside(script, test):
            continue
        edits: list[Edit] = []
        if isinstance(node, ast.Assign):
            edits = [script.delete_statement(node)]
        elif isinstance(node, ast.Call) and name_of(node.func) == "where" and len(node.args) == 3:
            edits = [script.replace(node, script.source(node.args[2]))]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            edits = [script.replace(node, script.source(node.func.value))]
        yield script.symptom(node, edits=edits)


def _only_entities(script: Script, write: ast.Assign) -> bool:
    """Whether a write is of entities alone: B- or I- in its value, or made only where the tag is not O."""
    text = script.source(write.value)
    if re.search(r"[\"'][BISEM]-", text):
        return True
    node: ast.AST | None = script.parent(write)
    inside: ast.AST = write
    while node is not None and not isinstance(node, ast.FunctionDef | ast.Module):
        if isinstance(node, ast.If) and inside in node.body:
            return any(_outside(script, part, unlike=True) for part in _parts(node.test, ast.And))
        if isinstance(node, ast.For) and inside in node.body:
            before = node.body[: node.body.index(inside)]  # type: ignore[arg-type]
            if any(
                isinstance(other, ast.If)
                and isinstance(other.body[-1], ast.Continue)
                and any(_outside(script, part) for part in _parts(other.test, ast.Or))
                for other in before
            ):
                return True
        node, inside = script.parent(node), node
    return False


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
    # Something else beside entities may be O.
    if not writes or not all(_only_entities(script, write) for write in writes) or re.search(r"['\"]O['\"]", written):
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
