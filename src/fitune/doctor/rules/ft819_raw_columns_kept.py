"""Raw columns are kept and reach the collator

## What it says

`remove_unused_columns=False`, while the rows still have text or dictionaries.

## Why

The collator turns every column into a tensor and fails on strings, offsets and dictionaries: `Unable to create
tensor`.

## How to know

The keys of `train_dataset[0]`.

## How to fix

Delete the argument, and drop the raw columns in `map`: `remove_columns=dataset["train"].column_names`.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/main_classes/trainer
"""

import ast
from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.script import Call, Script, name_of
from fitune.doctor.symptom import Edit, Symptom
from fitune.messages import _

SEVERITY = "warning"
SAFETY = "safe"


FAILED = (
    r"must be real number, not (?:list|dict|str|tuple)|too many dimensions 'str'|Could not infer dtype of (?:dict|str)",
    r"Unable to create tensor, you should probably activate|batch must contain tensors, numpy arrays, numbers",
    r"expected Tensor as element \d+ in argument \d+, but got (?:list|str|dict)",
)


def read(log: Log) -> Iterator[Symptom]:
    """The argument in a log beside a collator that failed on a column."""
    if longer := log.find(r"Column \d+ named \S+ expected length \d+ but got length \d+"):
        title = _("map makes more or fewer rows, and the old columns stay beside them")
        yield symptom(longer, confidence=0.96, severity="error", title=title)
    kept, failed = log.find(r"remove_unused_columns['\"]?\s*[=:]\s*False"), log.find(*FAILED)
    if kept and failed:
        yield symptom([*failed, *kept], confidence=0.97, severity="error")


def check(script: Script) -> Iterator[Symptom]:
    """The argument beside a stock Trainer without a collator of the script's own."""
    for call in script.calls("TrainingArguments"):
        keyword = call.keyword("remove_unused_columns")
        if keyword is None or not isinstance(keyword.value, ast.Constant) or keyword.value.value is not False:
            continue
        collator = next((trainer.value("data_collator") for trainer in script.calls("Trainer")), None)
        if isinstance(collator, ast.Name) and not isinstance(script.resolve(collator), ast.Call):
            continue  # a function of the script's own may well want the raw columns
        yield script.symptom(keyword, edits=[script.delete_keyword(call, keyword), *_maps(script)])


def _maps(script: Script) -> list[Edit]:
    """``remove_columns`` for the maps that make labels out of raw columns."""
    edits: list[Edit] = []
    for call in script.calls("map"):
        owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        if not isinstance(owner, ast.Name) or call.keyword("remove_columns") or not script.is_token_task:
            continue
        origin = script.assigned(owner.id)
        loaded = (
            isinstance(origin, ast.Call)
            and name_of(origin.func) in {"load_dataset", "DatasetDict"}
            and not Call(origin).keyword("split")
        )
        columns = f'{owner.id}["train"].column_names' if loaded else f"{owner.id}.column_names"
        edits.append(script.add_keyword(call, f"remove_columns={columns}"))
    return edits
