"""There is no such model, or its folder lacks files

## What it says

`is not a local folder and is not a valid model identifier`, `does not appear to have a file named config.json`,
`Error no file named model.safetensors`, `Repo id must be in the form`.

## Why

A typing error in the name, a folder path that does not exist here (then it is taken for a hub name), or a
folder in which files are missing.

## How to know

`ls` the folder: it needs config.json, the weights (model.safetensors or pytorch_model.bin) and the tokenizer
(vocab.txt or tokenizer.json).

## How to fix

Check the name: `fitune models` lists the models that are here. For a folder give its full path
(`--model /path/to/folder`) and copy into it what is missing.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/installation#offline-mode
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT702", "FT720", "FT722", "FT729"}
PATTERNS = (
    r"Incorrect path_or_model_id|\[E050\] Can't find model",
    r"Can't find 'adapter_config\.json'|Can't find weights for",
    r"Can't find a vocabulary file at path|modelscope\S*\.errors\.NotExistError"
    r"|No such file or directory: '[^']*(?:config\.json|vocab\.txt|model\.safetensors|pytorch_model\.bin)'",
    r"path should be string, bytes, os\.PathLike or integer, not NoneType|Repository [Nn]ot [Ff]ound"
    r"|RevisionNotFoundError|TypeError: not a string",
    r"is not a local folder and is not a valid model identifier",
    r"does not appear to have (?:a file named|files named)",
    r"Error no file named",
    r"HFValidationError|Repo id must (?:be in the form|use alphanumeric)",
    r"RepositoryNotFoundError|Repository Not Found for url|(?<!Local)EntryNotFoundError|404 Client Error",
    r"Can'?t load (?:tokenizer|the tokenizer|config|the configuration|the model|feature extractor"
    r"|weights) (?:for|of) '",
    r"was not found in (?:the )?(?:model|tokenizers?) (?:model )?name list",
    r"Unable to load vocabulary from file",
)
UNLESS = (
    r"couldn'?t connect to '?https?://",
    r"GatedRepoError|access gated repo|access a gated repo",
)


def read(log: Log) -> Iterator[Symptom]:
    """There is no such model, or its folder lacks files, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.93, unless=UNLESS)
