"""average="binary" is for two classes alone

## What it says

`Target is multiclass but average='binary'`, or a score for class 1 only.

## Why

scikit-learn's default average counts class 1 as the class that matters; with three classes it raises, after a
whole epoch.

## How to know

The number of classes in the data.

## How to fix

Use `average="macro"` (every class counts alike); with two classes "binary" is right when class 1 is what you
look for.

## How safe

Safe: only the report changes.

## Sources

https://scikit-learn.org/stable/modules/generated/sklearn.metrics.f1_score.html
"""

import ast
from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.script import Script, name_of, text_of
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
SAFETY = "safe"


def read(log: Log) -> Iterator[Symptom]:
    """scikit-learn's ValueError."""
    yield from matches(
        log,
        (
            r"Target is multi(?:class|label)(?:-\w+)? but average='binary'",
            r"multiclass-multioutput is not supported",
            r"pos_label=\S+ is not a valid label|y_true takes value in .* and pos_label is not specified",
        ),
        confidence=0.98,
    )


def _from_sklearn(script: Script, name: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("sklearn")
        and any((alias.asname or alias.name) == name for alias in node.names)
        for node in script.walk(ast.ImportFrom)
    )


def check(script: Script) -> Iterator[Symptom]:
    """A score with average="binary": an error beside more than two classes, a note beside two."""
    number = next(
        (
            script.resolve(call.value("num_labels"))
            for call in script.calls("from_pretrained")
            if call.keyword("num_labels")
        ),
        None,
    )
    classes = len(script.data.classes) or (
        number.value if isinstance(number, ast.Constant) and isinstance(number.value, int) else 2
    )
    for call in script.calls(
        "precision_recall_fscore_support", "f1_score", "precision_score", "recall_score", "fbeta_score"
    ):
        value = call.value("average")
        if value is None and classes > 2 and call.node.args and _from_sklearn(script, name_of(call.node.func)):
            if name_of(call.node.func) != "precision_recall_fscore_support" and not call.spreads:
                yield script.symptom(call.node, edits=[script.add_keyword(call, 'average="macro"')])
            continue
        if value is not None and text_of(value) == "binary":
            many = classes > 2
            title = "" if many else _("The F1 is that of class 1 alone")
            yield script.symptom(
                value, edits=[script.replace(value, '"macro"')], severity="error" if many else "note", title=title
            )
