"""The metric that picks the best model never appears

## What it says

`metric_for_best_model` names something that evaluation does not return: `KeyError: 'eval_f1'`, or early
stopping that is silently off.

## Why

The name must be a key of what `compute_metrics` returns (with or without `eval_`); without `compute_metrics`
there is only `eval_loss`.

## How to know

The keys in the log's evaluation line.

## How to fix

Set `metric_for_best_model` to a key that `compute_metrics` returns; fitune checks the name before step 1.

## How safe

Safe.

## Sources

huggingface/transformers#28530 ; #40217
"""

import ast
from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.script import Script, text_of
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
SAFETY = "safe"


def read(log: Log) -> Iterator[Symptom]:
    """A KeyError on eval_..., or the Trainer's own words."""
    yield from matches(
        log,
        (
            r"KeyError: ['\"]eval_\w+['\"]",
            r"Early stopping conditioned on metric .* which is not available|could not find the monitored key in",
            r"EarlyStoppingCallback requires metric_for_best_model"
            r"|early stopping required metric_for_best_model, but did not find",
            (
                r"metric_for_best_model.*(?:is )?not found in the evaluation metrics|The "
                r"`metric_for_best_model` training argument is set to"
            ),
        ),
        confidence=0.96,
    )
    if log.has(r"check_metric_value|best_metric|metric_to_check|metric_for_best"):
        yield from matches(log, (r"not supported between instances of '\w+' and 'NoneType'",), confidence=0.9)


def returned_keys(script: Script) -> set[str] | None:
    """Keys that compute_metrics returns; None: they cannot be read from the text; empty: there is no such function."""
    trainers = [call for call in script.calls("Trainer") if call.keyword("compute_metrics")]
    if not trainers:
        return set()
    name = trainers[0].value("compute_metrics")
    function = next(
        (
            f
            for f in script.walk(ast.FunctionDef)
            if isinstance(f, ast.FunctionDef) and isinstance(name, ast.Name) and f.name == name.id
        ),
        None,
    )
    if function is None:
        return None
    keys: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Return):
            value = script.resolve(node.value)
            if not isinstance(value, ast.Dict) or not all(text_of(key) for key in value.keys):
                return None
            keys |= {text_of(key) or "" for key in value.keys}
    return keys


def check(script: Script) -> Iterator[Symptom]:
    """metric_for_best_model against the keys of compute_metrics."""
    keys = returned_keys(script)
    if keys is None:
        return
    for call in script.calls("TrainingArguments"):
        value = call.value("metric_for_best_model")
        wanted = (text_of(value) or "loss").removeprefix("eval_")
        if (
            value is None
            or wanted in {"loss", *(key.removeprefix("eval_") for key in keys)}
            or wanted.endswith("_loss")
        ):
            continue
        better = "f1" if "f1" in keys or (not keys and script.is_token_task) else next(iter(sorted(keys)), "loss")
        yield script.symptom(
            value, edits=[script.replace(value, f'"{better}"')], title=_("No evaluation returns {name}", name=wanted)
        )
