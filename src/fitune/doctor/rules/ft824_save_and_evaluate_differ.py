"""load_best_model_at_end wants saving and evaluating at the same steps

## What it says

`--load_best_model_at_end requires the save and eval strategy to match`, or `requires the saving steps to be a
round multiple of the evaluation steps`.

## Why

The best checkpoint can only be one that was evaluated: without an evaluation at that step there is nothing to
compare.

## How to know

`print(args.eval_strategy, args.eval_steps, args.save_strategy, args.save_steps)`.

## How to fix

Give both the same value: `eval_strategy="epoch", save_strategy="epoch"`, or `"steps"` with `save_steps` a
multiple of `eval_steps`. `fitune train` keeps the best weights apart from the checkpoints and needs neither.

## How safe

Safe: only when checkpoints are written changes.

## Sources

https://huggingface.co/docs/transformers/main_classes/trainer
"""

import ast
from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.script import Script, text_of
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"EarlyStoppingCallback requires (?:load_best_model_at_end|IntervalStrategy)",
    r"but you didn't pass an `?eval_dataset`?|evaluation requires an eval_dataset",
    r"requires the saving steps to be a round multiple of the eval",
    r"load_best_model_at_end`? requires the (?:save and eval|saving)",
)


def read(log: Log) -> Iterator[Symptom]:
    """load_best_model_at_end wants saving and evaluating at the same steps, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)


def check(script: Script) -> Iterator[Symptom]:
    """load_best_model_at_end beside two strategies that differ."""
    for call in script.calls("TrainingArguments"):
        best = call.value("load_best_model_at_end")
        if not isinstance(best, ast.Constant) or best.value is not True or call.spreads:
            continue
        evaluation = call.keyword("eval_strategy") or call.keyword("evaluation_strategy")
        saving = call.keyword("save_strategy")
        wanted = text_of(evaluation.value) if evaluation else "no"
        found = text_of(saving.value) if saving else "steps"
        if wanted is None or found is None or wanted == found:
            continue
        if wanted == "no":
            edits = [script.add_keyword(call, f'eval_strategy="{found}"')] if not evaluation else []
            yield script.symptom(best, edits=edits)
        elif saving:
            yield script.symptom(saving, edits=[script.replace(saving.value, f'"{wanted}"')])
        else:
            yield script.symptom(best, edits=[script.add_keyword(call, f'save_strategy="{wanted}"')])
