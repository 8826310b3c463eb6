"""Running the script again starts from the beginning

## What it says

`trainer.train()` without `resume_from_checkpoint`.

## Why

The stock Trainer never looks for checkpoints by itself: the same command starts at step 0 and overwrites them.

## How to know

The second run's progress bar starts at 0.

## How to fix

Pass the newest checkpoint: `trainer.train(resume_from_checkpoint=get_last_checkpoint(output_dir))`, which is
None the first time.

## How safe

Safe, as long as data and settings are the same.

## Sources

hiyouga/LlamaFactory#721 ; measured for fitune with transformers 5.24
"""

import ast
from collections.abc import Iterator

from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom

SEVERITY = "note"
SAFETY = "safe"


def check(script: Script) -> Iterator[Symptom]:
    """train() of a Trainer without arguments."""
    names = {
        parent.targets[0].id
        for call in script.calls("Trainer")
        if isinstance(parent := script.parent(call.node), ast.Assign) and isinstance(parent.targets[0], ast.Name)
    }
    for call in script.calls("train"):
        owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
        if not isinstance(owner, ast.Name) or owner.id not in names or call.node.args or call.node.keywords:
            continue
        output = f"{owner.id}.args.output_dir"
        text = f"resume_from_checkpoint=get_last_checkpoint({output}) if os.path.isdir({output}) else None"
        edits = [
            script.add_keyword(call, text),
            *script.add_import("import os", "os"),
            *script.add_import("from transformers.trainer_utils import get_last_checkpoint", "get_last_checkpoint"),
        ]
        yield script.symptom(call.node, edits=edits)
