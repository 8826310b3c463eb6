"""The data set or its configuration does not exist on the hub

## What it says

`DatasetNotFoundError`, `BuilderConfig 'cluener' not found. Available: [...]`, `Dataset scripts are no longer
supported`.

## Why

The name in the post is wrong (the hub's `clue` has no `cluener`), was moved, or needs a loading script that
datasets 4 no longer runs.

## How to know

The message lists the configurations that exist.

## How to fix

Download the files from their authors and read them: `fitune train train.json`, or `load_dataset("json",
data_files={"train": "train.json"})`. A loading script still runs with `pip install "datasets<4"`.

## How safe

Safe.

## Sources

https://huggingface.co/docs/datasets/loading
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.script import Script, text_of
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
PATTERNS = (
    r"DatasetNotFoundError|Dataset '[^']+' doesn't exist on the Hub",
    r"BuilderConfig '?[\w-]+'? not found",
    r"datasets/\S+ contains custom code which must be executed|repository for \S+ contains custom code which must be"
    r" executed to correctly load the dataset",
    r"Instruction \"\w+\" corresponds to no data|Unknown split \S+ Should be one of"
    r"|^\s*KeyError: ['\"](?:train|validation|valid|dev|test)['\"]",
    r"Dataset scripts are no longer supported|trust_remote_code` is not supported anymore",
)


def read(log: Log) -> Iterator[Symptom]:
    """The data set or its configuration does not exist on the hub, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)


def check(script: Script) -> Iterator[Symptom]:
    """A configuration that posts name and the hub never had."""
    for call in script.calls("load_dataset"):
        words = [text_of(argument) for argument in call.node.args[:2]]
        if words == ["clue", "cluener"]:
            yield script.symptom(call.node, title=_("The hub's data set clue has no configuration cluener"))
