"""Worker processes import the script again: no main guard, or a function inside a function

## What it says

`An attempt has been made to start a new process before the current process has finished its bootstrapping
phase`, `freeze_support()`, `Can't pickle local object`, `Can't get attribute ... on <module '__main__'`.

## Why

On Windows, macOS and in notebooks a worker starts a fresh Python that imports the script: what stands at its
top level runs again, and lambdas, inner functions and classes of a notebook cannot be sent to it.

## How to know

It runs with `num_workers=0` (`dataloader_num_workers=0`, `num_proc=None`).

## How to fix

Set `dataloader_num_workers=0`; or put the program under `if __name__ == "__main__":` and the collate function
at the file's top level. For texts workers gain nothing.

## How safe

Safe: nothing that is learned changes.

## Sources

https://docs.pytorch.org/docs/stable/notes/windows.html
"""

import ast
from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"Can't get attribute '\w+' on <module '__main__' \(built-in\)>",
    r"attempt has been made to start a new process before|freeze_support\(\)",
    r"Can't (?:pickle|get) local object|Can't get attribute '\w+' on <module '__mp?_?main__'",
    r"Can't pickle <function <lambda>|DataLoader worker .* exited unexpectedly.*__main__",
)


def read(log: Log) -> Iterator[Symptom]:
    """Worker processes import the script again: no main guard, or a function inside a function, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)


def check(script: Script) -> Iterator[Symptom]:
    """Worker processes in a script without a main guard: it fails where processes are spawned (Windows, macOS)."""
    if "__name__" in script.text:
        return
    for call in script.calls("TrainingArguments", "DataLoader"):
        keyword = call.keyword("dataloader_num_workers") or call.keyword("num_workers")
        number = script.resolve(keyword.value) if keyword else None
        if keyword and isinstance(number, ast.Constant) and isinstance(number.value, int) and number.value > 0:
            yield script.symptom(keyword, severity="note", confidence=0.7)
