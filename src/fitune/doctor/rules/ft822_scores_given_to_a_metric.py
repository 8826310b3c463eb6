"""A metric was given scores where it wants classes

## What it says

`Classification metrics can't handle a mix of multiclass and continuous-multioutput targets` (or of binary and
continuous, multilabel and multiclass).

## Why

`compute_metrics` gets the logits, one number per class; the metric wants one class per text. For several labels
per text it wants 0 and 1 on both sides.

## How to know

`print(predictions.shape, labels.shape)` at the start of `compute_metrics`.

## How to fix

One class per text: `predictions = logits.argmax(-1)`. Several labels per text: `predictions = (logits >
0).astype(int)`. `fitune train` computes all of this itself.

## How safe

Safe: only the report changes.

## Sources

https://scikit-learn.org/stable/modules/model_evaluation.html
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.script import Script, name_of
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"multi_class must be in \('ovo', 'ovr'\)|y_score.*must be|Target scores need to be probabilities",
    r"Predictions and/or references don't match the expected format|'tuple' object has no attribute '(?:argmax"
    r"|shape|predictions|ndim|cpu)'",
    r"Mix of label input types|Mix type of y not allowed",
    r"y_true and y_pred have different number of output|The requested array has an inhomogeneous shape"
    r"|axis 2 is out of bounds for array",
    r"Classification metrics can't handle a mix of|(?:continuous|unknown"
    r"|multiclass-multioutput)(?:-multioutput)? (?:format )?is not supported",
    r"Found input variables with inconsistent numbers of samples: \[\d+, \d+\]"
    r"|y should be a 1d array, got an array of shape",
)


def read(log: Log) -> Iterator[Symptom]:
    """A metric was given scores where it wants classes, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93)


METRICS = (
    "accuracy_score",
    "balanced_accuracy_score",
    "f1_score",
    "precision_score",
    "recall_score",
    "precision_recall_fscore_support",
    "classification_report",
    "confusion_matrix",
    "matthews_corrcoef",
    "cohen_kappa_score",
    "compute",
)
CLASSES_MADE = r"arg_?max|topk|sigmoid|>=?\s*-?[\d.]|round\(|rint\(|where\(|decode|squeeze"


def check(script: Script) -> Iterator[Symptom]:
    """A ``compute_metrics`` that hands its predictions on as they came."""
    if "preprocess_logits_for_metrics" in script.text:
        return
    for trainer in script.calls("Trainer"):
        named = trainer.value("compute_metrics")
        for function in script.walk(ast.FunctionDef):
            if isinstance(function, ast.FunctionDef) and named is not None and function.name == name_of(named):
                yield from _handed_on(script, function)


def _handed_on(script: Script, function: ast.FunctionDef) -> Iterator[Symptom]:
    if not function.args.args or re.search(CLASSES_MADE, script.source(function)):
        return
    scores = _names_of_scores(function)
    for call in script.calls(*METRICS):
        if script.function(call.node) is not function:
            continue
        for value in (*call.node.args, *(keyword.value for keyword in call.node.keywords)):
            attribute = isinstance(value, ast.Attribute) and value.attr == "predictions"
            if attribute or (isinstance(value, ast.Name) and value.id in scores):
                yield script.symptom(value, edits=[script.replace(value, f"{script.source(value)}.argmax(-1)")])


def _names_of_scores(function: ast.FunctionDef) -> set[str]:
    """``logits`` of ``logits, labels = p`` and of ``logits = p.predictions`` (or ``p[0]``)."""
    given, names = function.args.args[0].arg, set[str]()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        whole = isinstance(value, ast.Name) and value.id == given
        if whole and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
            names.add(target.elts[0].id)
        part = isinstance(value, ast.Attribute) and value.attr == "predictions"
        part |= isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and value.slice.value == 0
        if part and name_of(value.value) == given and isinstance(target, ast.Name):  # type: ignore[attr-defined]
            names.add(target.id)
    return names
