"""Out of memory in evaluation: all logits are kept on the card

## What it says

The traceback goes through `evaluation_loop`, often `nested_concat` or `pad_across_processes`; training itself
ran.

## Why

The stock Trainer keeps every row's logits (rows x length x classes, fp32) on the card until evaluation ends.

## How to know

It dies at the end of an epoch or of `eval_steps`, later with a larger development set.

## How to fix

fitune reduces on the fly. In a script give the Trainer `preprocess_logits_for_metrics=lambda logits, labels:
logits.argmax(-1)`, and lower `per_device_eval_batch_size`.

## How safe

Exact: the metrics come out the same as long as they need only the argmax.

## Sources

huggingface/transformers#8476 ; #7232 ; #25313
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.oom import find_oom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"


def read(log: Log) -> Iterator[Symptom]:
    """Out of memory below the evaluation loop."""
    oom = find_oom(log)
    if oom is None:
        return
    kept = oom.frames(
        log,
        r"nested_concat|_pad_across_processes|torch_pad_and_concatenate"
        r"|pad_across_processes|all_preds|preds_host|EvalLoopContainer",
    )
    inside = oom.frames(log, r"in evaluation_loop|in prediction_loop|in prediction_step|in evaluate\b|in predict\b")
    if kept:
        yield symptom(kept + oom.hits[:1], confidence=0.96)
    elif inside:
        yield symptom(inside + oom.hits[:1], confidence=0.88)
