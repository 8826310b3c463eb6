"""A function or class that newer versions removed

## What it says

`cannot import name 'AdamW' from 'transformers'`, `cannot import name 'load_metric' from 'datasets'`,
`dropout(): argument 'input' (position 1) must be Tensor, not str`.

## Why

transformers dropped its own AdamW for PyTorch's, datasets moved metrics into the package evaluate. Since transformers 4
a model returns an object with names instead of a tuple: `_, pooled = bert(...)` then unpacks the names, which are
strings.

## How to know

The message names what is missing.

## How to fix

Import it from where it lives now: `from torch.optim import AdamW`; `from evaluate import load`
after `pip install evaluate`. For an unpacked output: `bert(..., return_dict=False)`, or `bert(...).pooler_output`.

## How safe

Safe.

## Sources

https://huggingface.co/docs/evaluate ; https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html
"""

import ast
from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.script import Script
from fitune.doctor.symptom import Edit, Symptom

# Models return an object with names since transformers 4, where they returned a tuple: unpacked, it gives its names.
UNPACKED = r"argument 'input' \(position 1\) must be Tensor, not (?:str|\w*Output)"
# Methods and functions that newer versions of their libraries took away.
GONE = (
    r"'\w*(?:Tokenizer\w*|TokenizersBackend)' object has no attribute"
    r" '(?:batch_encode_plus|encode_plus|max_len\w*|prepare_for_model|build_inputs_with_special_tokens"
    r"|pad_to_max\w*)'",
    r"'(?:\w*TrainingArguments|(?:Seq2Seq|Adapter)?Trainer|Accelerator|AcceleratorState)' object has no attribute",
    r"Can't get attribute '\w+' on <module '(?:transformers|pytorch_\w+|torch)",
    r"'(?:DataFrame|Series)' object has no attribute '(?:append|ix|as_matrix|iteritems|get_value)'",
    r"cannot import name '(?:BertAdam|WarmupLinearSchedule|warmup_linear|PYTORCH_PRETRAINED_BERT_CACHE)'",
    r"cannot import name '\w+' from 'transformers\.(?:modeling_bert|tokenization_bert|configuration_bert)'"
    r"|cannot import name '\w+_PRETRAINED_\w*ARCHIVE_(?:MAP|LIST)'"
    r"|No module named 'transformers\.(?:modeling|tokenization|configuration)_(?:bert|roberta|albert|xlnet|auto)'",
)
SEVERITY = "error"
SAFETY = "safe"


def read(log: Log) -> Iterator[Symptom]:
    """The ImportError."""
    yield from matches(
        log,
        (r"cannot import name '(?:AdamW|load_metric)'", r"has no attribute 'load_metric'"),
        confidence=0.97,
        unless=(r"None of PyTorch, TensorFlow.* have been found",),
    )
    yield from matches(log, (*GONE, UNPACKED), confidence=0.93)


def check(script: Script) -> Iterator[Symptom]:
    """from transformers import AdamW; from datasets import load_metric."""
    for node in script.walk(ast.ImportFrom):
        if not isinstance(node, ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if node.module == "transformers" and "AdamW" in names:
            others = [ast.unparse(alias) for alias in node.names if alias.name != "AdamW"]
            kept = f"\nfrom transformers import {', '.join(others)}" if others else ""
            yield script.symptom(node, edits=[script.replace(node, "from torch.optim import AdamW" + kept)])
        elif node.module == "datasets" and "load_metric" in names:
            others = [ast.unparse(alias) for alias in node.names if alias.name != "load_metric"]
            kept = f"\nfrom datasets import {', '.join(others)}" if others else ""
            old = next(alias.asname or alias.name for alias in node.names if alias.name == "load_metric")
            # Under its old name: a script often has an "evaluate" of its own.
            new = f"from evaluate import load as {old}"
            yield script.symptom(node, edits=[script.replace(node, new + kept), *_not_known_to_evaluate(script, old)])
    for call in script.calls("load_metric"):
        function = call.node.func
        if (
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Name)
            and function.value.id == "datasets"
        ):
            added = script.add_import("from evaluate import load as load_metric", "load_metric")
            edits = [*added, script.replace(function, "load_metric"), *_not_known_to_evaluate(script, "load_metric")]
            yield script.symptom(call.node, edits=edits)


def _not_known_to_evaluate(script: Script, name: str) -> list[Edit]:
    """Arguments of load_metric that evaluate.load would hand on to the metric."""
    return [
        script.delete_keyword(call, keyword)
        for call in script.calls(name)
        if (keyword := call.keyword("trust_remote_code")) is not None
    ]
