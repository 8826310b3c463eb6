"""Installed versions do not go together

## What it says

`is required for a normal functioning of this module, but found`, `cannot import name ... from
'huggingface_hub'`, NumPy 1 against 2, `torchvision::nms does not exist`, a keyword that accelerate or
transformers does not know.

## Why

One package was upgraded alone; the others were built for, or call, another version of it.

## How to know

`pip check` lists what is broken; `fitune doctor` lists it for the packages that matter.

## How to fix

Upgrade them together: `pip install -U "transformers>=4.57,<6" accelerate tokenizers huggingface-hub`; for NumPy
install the version that the message asks for.

## How safe

Safe in a virtual environment of your own.

## Sources

https://huggingface.co/docs/transformers/installation ;
https://numpy.org/doc/stable/numpy_2_0_migration_guide.html
"""

import re
from collections.abc import Iterator

from fitune.doctor.log import Log, matches, symptom
from fitune.doctor.raised import find_raised
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
TOPIC = "packages"
SAFETY = "safe"
COMMAND = 'pip install -U "transformers>=4.57,<6" accelerate tokenizers huggingface-hub'
PATTERNS = (
    r"compiled with different CUDA major versions|size changed, may indicate binary incompatibility"
    r"|_batch_setitems\(\) takes",
    r"dataset cached in a LocalFileSystem|Invalid pattern: '\*\*' can only",
    r"cannot import name '\w+' from '(?:typing_extensions|inspect|collections|importlib_metadata|packaging|fsspec"
    r"|pyarrow|scipy|sklearn|multiprocess|dill|filelock|requests|urllib3|jinja2|triton|torchvision|evaluate"
    r"|sentence_transformers)",
    r"is required for a normal functioning of this module, but found",
    r"cannot import name '(?!AdamW|load_metric)\w+' from '(?:transformers|huggingface_hub|tokenizers"
    r"|accelerate|datasets|numpy|torch|peft|safetensors|pydantic|pytorch_lightning|lightning|torchmetrics|flair"
    r"|simpletransformers)",
    r"compiled using NumPy 1\.x cannot be run in|numpy\.dtype size changed|_ARRAY_API not found"
    r"|numpy\.core\.multiarray failed to import",
    r"operator torchvision::nms does not exist",
    r"unexpected keyword argument '(?:keep_torch_compile|dispatch_batches|split_batches|even_batches"
    r"|use_seedable_sampler|num_items_in_batch)'",
    r"Found an incompatible version of \w+|module 'distutils' has no attribute 'version'",
    r"'\w*Tokenizer\w*' object is not callable",
    r"(?:flash_?attn|xformers|torch(?:vision|audio|text|_scatter|_sparse)|apex|deepspeed|bitsandbytes|causal_conv1d"
    r"|auto_gptq)\S*\.so: undefined symbol",
    r"unscale_\(\) has already been called on this optimizer"
    r"|'\w*(?:AdamW|Optimizer)' object has no attribute '(?:train|eval)'",
    r"Failed to import transformers\.\S+ because of the following error",
    r"Descriptors can(?:no|')t(?: not)? be created directly|Couldn't build proto file into descriptor pool"
    r"|has no attribute '_in_target_context_manager'",
    r"data did not match any variant of untagged enum (?:ModelWrapper|PyPreTokenizer|PyDecoder)",
    r"module '(?:torch|numpy(?=\S*' has no attribute '(?:float|int|bool|object|str|long|complex|unicode|Inf|NaN"
    r"|product|in1d))|pyarrow|datasets|tokenizers|transformers"
    r"|huggingface_hub|accelerate)\S*' has no attribute",
    r"Keras 3, but this is not yet supported",
    r"Disabling PyTorch because PyTorch >= [\d.]+ is required but found",
)
# Raised inside an installed package: it asks a name of another one that is not of the version it knows.
ONE_PACKAGE_ASKS_ANOTHER = r"module '[\w.]+' has no attribute|cannot import name"
CONFLICT = (
    r"(?:torch\w*|transformers|tokenizers|accelerate|datasets|peft|numpy|huggingface[-_]hub|safetensors) [\d.+\w]+ "
    r"(?:requires|has requirement) .*(?:incompatible|which is not installed|but you'll have)"
    r"|requires (?:torch|transformers|tokenizers|accelerate|numpy"
    r"|huggingface[-_]hub)[<>=!~]\S*, but you have .*incompatible"
)
UNLESS = (r"ModuleNotFoundError: No module named '(?:torch|transformers|accelerate)'",)


def read(log: Log) -> Iterator[Symptom]:
    """Installed versions do not go together, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.92, unless=UNLESS)
    raised = find_raised(log)
    if raised is not None and not raised.own and re.match(ONE_PACKAGE_ASKS_ANOTHER, raised.words):
        yield symptom([raised.hit], confidence=0.6)
    if hits := log.find(CONFLICT):
        # pip says so of any package of the environment; Colab and Kaggle always do.
        harmless = log.has(r"Successfully installed|'loss'|it/s") and not log.has(r"Traceback \(most recent")
        yield symptom(hits, confidence=0.5 if harmless else 0.8, severity="note" if harmless else None)


def examine(machine: Machine) -> Iterator[Symptom]:
    """Broken requirements, and a transformers that cannot be imported."""
    if machine.conflicts:
        yield Symptom(evidence=machine.conflicts, count=len(machine.conflicts))
    elif machine.transformers_error:
        yield Symptom(evidence=(_("import transformers fails: {error}", error=machine.transformers_error),))
