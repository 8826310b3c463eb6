"""LoRA's target modules are not in this model

## What it says

`Target modules {'q_proj', 'v_proj'} not found in the base model`, `Please specify target_modules in
peft_config`.

## Why

Layer names differ: Llama has `q_proj` and `v_proj`, BERT has `query` and `value`, DistilBERT `q_lin` and
`v_lin`.

## How to know

`print([name for name, _ in model.named_modules()])`.

## How to fix

Use the names of this model: for BERT and RoBERTa `target_modules=["query", "value"]`, for DistilBERT `["q_lin",
"v_lin"]`; and `modules_to_save=["classifier"]` so that the new head learns too.

## How safe

Safe.

## Sources

https://huggingface.co/docs/peft/developer_guides/lora
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"Target modules? .*not found in the base model"
    r"|Please specify `?target_modules`? in|No modules were targeted for adaptation"
    r"|target module .* is not supported",
)


def read(log: Log) -> Iterator[Symptom]:
    """LoRA's target modules are not in this model, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
