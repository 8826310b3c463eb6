"""An argument has been renamed or removed

## What it says

`TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'`.

## Why

transformers 4.46 renamed `evaluation_strategy` to `eval_strategy` and `tokenizer=` of the Trainer to
`processing_class=`; version 5 removed `warmup_ratio` (`warmup_steps` below 1 is a share), `logging_dir`,
`overwrite_output_dir` and others.

## How to know

The message names the argument.

## How to fix

Use the new name (`fitune diagnose SCRIPT --fix OUT` writes them all): `eval_strategy`, `warmup_steps=0.1`,
`processing_class=tokenizer`, `use_cpu`, `train_sampling_strategy="group_by_length"`.

## How safe

Safe: the same setting under its new name.

## Sources

huggingface/transformers#7974 ; #41323 ;
https://github.com/huggingface/transformers/blob/main/MIGRATION_GUIDE_V5.md
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.script import Call, Script, name_of, text_of
from fitune.doctor.symptom import Edit, Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
SAFETY = "safe"

RENAMED = {
    "evaluation_strategy": "eval_strategy",
    "no_cuda": "use_cpu",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "push_to_hub_token": "hub_token",
    "push_to_hub_model_id": "hub_model_id",
    "xpu_backend": "ddp_backend",
}
# Gone since transformers 5 (still known in 4.57): the value becomes another argument, or nothing.
SINCE_5 = {
    "warmup_ratio": "warmup_steps",
    "logging_dir": "",
    "overwrite_output_dir": "",
    "save_safetensors": "",
    "half_precision_backend": "",
    "fp16_backend": "",
    "fp16_opt_level": "",
    "past_index": "",
    "use_mps_device": "",
    "jit_mode_eval": "",
    "use_ipex": "",
    "torchdynamo": "",
    "ray_scope": "",
    "tpu_num_cores": "",
    "include_inputs_for_metrics": "",
    "include_tokens_per_second": "",
    "use_legacy_prediction_loop": "",
    "group_by_length": "group",
    "adafactor": "adafactor",
}
GONE = {"evaluate_during_training": "", "dispatch_batches": "", "split_batches": "", "sharded_ddp": ""}
# Names that an older transformers does not know yet.
NEW = {
    "eval_strategy",
    "processing_class",
    "use_cpu",
    "attn_implementation",
    "dtype",
    "save_only_model",
    "batch_eval_metrics",
}
ALL = {*RENAMED, *SINCE_5, *GONE, "tokenizer", "use_auth_token"}


MOVED = (
    r"'\w*Trainer' object has no attribute '(?:tokenizer|use_amp|is_world_master|prediction_loop)'",
    r"is not a valid (?:IntervalStrategy|SchedulerType|SaveStrategy|OptimizerNames|HubStrategy|EvaluationStrategy)",
    r"(?:unrecognized arguments: |not used by the HfArgumentParser: ).*--(?:"
    + "|".join(sorted({*RENAMED, *SINCE_5, *GONE}))
    + r")\b",
    r"(?:_batch_encode_plus|_encode_plus|_call_fast|__call__|from_pretrained)\(\) got an unexpected keyword argument",
    r"got an unexpected keyword argument '(?:gpus|tpu_cores|auto_select_gpus|progress_bar_refresh_rate|t_total"
    r"|correct_bias|trust_remote_code|use_auth_token)'",
    r"compute_loss\(\) got an unexpected keyword argument|(?:training_step|_maybe_log_save_evaluate|log|evaluate"
    r"|create_optimizer)\(\)"
    r" (?:got an unexpected keyword argument|takes \d+ positional arguments? but \d+ were given)",
)


def read(log: Log) -> Iterator[Symptom]:
    """The TypeError; a deprecation warning is a note."""
    if launched := log.find(r"unrecognized arguments: (--local[-_]rank)"):
        title = _("torchrun gives the rank in the environment, not as an argument")
        text = _("read it in the script: int(os.environ['LOCAL_RANK']); and start with torchrun")
        yield symptom(launched, confidence=0.95, title=title, fixes=(Fix(safety="safe", text=text),))
        return
    hits = log.find(r"got an unexpected keyword argument '(\w+)'")
    # accelerate's keywords, passed by the Trainer's own code: its version, not the script.
    inside = log.has(r"in create_accelerator_and_postprocess|Accelerator\(\*\*")
    own = [
        hit
        for hit in hits
        if (hit.match[1] in ALL and not inside and "Accelerator" not in hit.line.text)
        or hit.match[1] in NEW
        or "TrainingArguments" in hit.line.text
        or re.search(r"\bTrainer\.", hit.line.text)
    ]
    if own:
        name = own[0].match[1]
        new = RENAMED.get(name) or {
            "warmup_ratio": "warmup_steps",
            "tokenizer": "processing_class",
            "use_auth_token": "token",
        }.get(name)
        if name in NEW:
            title = _("this transformers is older than the argument {name}", name=name)
            text = _("update it, or use the old name (evaluation_strategy, tokenizer, no_cuda, torch_dtype)")
            fix = Fix(safety="safe", text=text, command='pip install -U "transformers>=4.57,<6"')
            yield symptom(own, confidence=0.95, title=title, fixes=(fix,))
            return
        title = (
            _("{name} is called {new} now", name=name, new=new)
            if new
            else _("the argument {name} no longer exists", name=name)
        )
        yield symptom(own, confidence=0.97, title=title)
    elif hits := log.find(*MOVED):
        yield symptom(hits, confidence=0.93, title=_("an argument has another name or another value now"))
    elif warned := log.find(
        r"`?(?:evaluation_strategy|tokenizer|no_cuda|warmup_ratio|logging_dir|overwrite_output_dir"
        r"|per_gpu_\w+)`? is (?:now )?deprecated"
    ):
        yield symptom(warned, confidence=0.6, severity="note")


def check(script: Script) -> Iterator[Symptom]:
    """Old names in TrainingArguments, Trainer and from_pretrained."""
    written = script.calls("TrainingArguments", "Seq2SeqTrainingArguments")
    for call in [*written, *_spread(script, written)]:
        for keyword in call.node.keywords:
            if (name := keyword.arg) and (edits := _arguments(script, call, keyword, name)) is not None:
                yield script.symptom(
                    keyword, edits=edits, title=_("TrainingArguments has no {name} any more", name=name)
                )
    yield from _literal(script, written)
    for call in script.calls("Trainer"):
        if keyword := call.keyword("tokenizer"):
            edits = [script.rename_keyword(keyword, "processing_class")]
            yield script.symptom(
                keyword, edits=edits, title=_("{name} is called {new} now", name="tokenizer", new="processing_class")
            )
    for call in script.calls("from_pretrained"):
        if keyword := call.keyword("use_auth_token"):
            yield script.symptom(
                keyword,
                edits=[script.rename_keyword(keyword, "token")],
                title=_("{name} is called {new} now", name="use_auth_token", new="token"),
            )


def _spread(script: Script, calls: list[Call]) -> list[Call]:
    """``TrainingArguments(**settings)``: the dict(...) that it is given."""
    values = [script.resolve(k.value) for call in calls for k in call.node.keywords if k.arg is None]
    return [Call(value) for value in values if isinstance(value, ast.Call) and name_of(value.func) == "dict"]


def _literal(script: Script, calls: list[Call]) -> Iterator[Symptom]:
    """The same, where the settings are written as {"name": value}."""
    for call in calls:
        for value in (script.resolve(k.value) for k in call.node.keywords if k.arg is None):
            for key in value.keys if isinstance(value, ast.Dict) else ():
                name = text_of(key)
                if key is not None and name in RENAMED:
                    title = _("TrainingArguments has no {name} any more", name=name)
                    yield script.symptom(key, edits=[script.replace(key, f'"{RENAMED[name]}"')], title=title)


def _arguments(script: Script, call: Call, keyword: ast.keyword, name: str) -> list[Edit] | None:
    if name in RENAMED:
        return [script.rename_keyword(keyword, RENAMED[name])]
    if name in GONE:
        return [script.delete_keyword(call, keyword)]
    if name not in SINCE_5 or script.transformers_major < 5:
        return None
    if name == "warmup_ratio":
        return [script.rename_keyword(keyword, "warmup_steps")]
    on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    if name == "group_by_length" and on:
        return [script.replace(keyword, 'train_sampling_strategy="group_by_length"')]
    if name == "adafactor" and on and not call.keyword("optim"):
        return [script.replace(keyword, 'optim="adafactor"')]
    return [script.delete_keyword(call, keyword)]
