"""The split is another one at every run

## What it says

Rows are split, or shuffled before they are split, and nothing in the script fixes the seed.

## Why

`train_test_split`, `random_split` and `shuffle` draw from a generator that starts anywhere. The next run evaluates on
other rows, so its score cannot be compared; a run that goes on from a checkpoint has trained on its evaluation rows.

## How to know

Print the first five rows of the development set in two runs.

## How to fix

Give the split its own seed: `random_state=42` (scikit-learn, pandas), `seed=42` (datasets),
`random.Random(42).shuffle(rows)`.

## How safe

Unsafe: other rows are trained on, once.

## Sources

https://scikit-learn.org/stable/common_pitfalls.html#controlling-randomness
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.script import Script, name_of, seed_keyword
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "note"
SAFETY = "unsafe"

SEEDED = (
    r"set_seed\(|seed_everything|random\.seed\(|manual_seed\(|default_rng\(\w|RandomState\(\w|enable_full_determinism"
)
"""Also of a whole library: the splits draw from the generators that these set."""
RESUMES = r"resume_from_checkpoint\s*=\s*(?!False|None)"


def check(script: Script) -> Iterator[Symptom]:
    """Splits that draw, in a script that never fixes a seed: worse where it goes on from a checkpoint."""
    if re.search(SEEDED, script.text):
        return
    severity = "warning" if re.search(RESUMES, script.text) else None
    for node, edits in (*_splits(script), *_shuffles(script)):
        yield script.symptom(node, edits=edits, severity=severity)


def _splits(script: Script) -> Iterator[tuple[ast.AST, list[Edit]]]:
    for call in script.calls("train_test_split"):
        seeded = call.keyword("random_state") or call.keyword("seed") or call.keyword("generator")
        fixed = call.value("shuffle")
        if seeded or call.spreads or (isinstance(fixed, ast.Constant) and fixed.value is False):
            continue
        yield call.node, [script.add_keyword(call, f"{seed_keyword(call)}=42")]
    for call in script.calls("random_split"):
        if not call.keyword("generator") and len(call.node.args) < 3:
            edits = [script.add_keyword(call, "generator=torch.Generator().manual_seed(42)")]
            yield call.node, [*edits, *script.add_import("import torch", "torch")]


def _shuffles(script: Script) -> Iterator[tuple[ast.AST, list[Edit]]]:
    """A list or table that is shuffled and cut with slices later."""
    cut = {name for node in script.walk(ast.Subscript) if (name := _sliced(node))}
    for call in script.calls("shuffle"):
        function, arguments = call.node.func, call.node.args
        owner = getattr(function, "value", function)
        if name_of(owner) == "random" and len(arguments) == 1 and name_of(arguments[0]) in cut:
            inside = f"random.Random(42).shuffle({script.source(arguments[0])})"
            edits = [script.replace(call.node, inside)] if script.source(owner) == "random" else []
            yield call.node, edits
    for call in script.calls("sample"):
        statement = script.statement(call.node)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if call.keyword("frac") and not call.keyword("random_state") and target and name_of(target) in cut:
            yield call.node, [script.add_keyword(call, "random_state=42")]


def _sliced(node: ast.AST) -> str:
    """``rows`` of ``rows[:n]``, ``rows[n:]``, ``rows.iloc[:n]``; "" for other subscripts and for ``rows[a:b]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return ""
    piece, owner = node.slice, node.value
    owner = owner.value if isinstance(owner, ast.Attribute) and owner.attr in {"iloc", "loc"} else owner
    return name_of(owner) if (piece.lower is None) != (piece.upper is None) else ""
