"""tokenizers was used before a fork

## What it says

`The current process just got forked, after parallelism has already been used`; the run may hang with no further
line.

## Why

A child process made by fork copies the locks of the tokenizer's threads, which nobody opens again.

## How to know

As a warning alone it is harmless. When the last lines are an interrupt inside a queue or a lock, it hung.

## How to fix

Set `TOKENIZERS_PARALLELISM=false` before Python starts, or tokenise before the loaders start
(`dataloader_num_workers=0`).

## How safe

Safe: tokenising takes longer, nothing else.

## Sources

huggingface/tokenizers#187 ; huggingface/datasets#620
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "warning"
SAFETY = "safe"
COMMAND = "export TOKENIZERS_PARALLELISM=false"


def read(log: Log) -> Iterator[Symptom]:
    """The warning; an error only where the run hung or tokenizers was forced on."""
    hits = log.find(r"process just got forked, after parallelism has already been used|TOKENIZERS_PARALLELISM=\(?true")
    if not hits:
        return
    last = hits[-1].line.number
    hung = [
        hit
        for hit in log.find(r"^\s*KeyboardInterrupt|futex_wait|卡住|no output for|\bhangs?\b")
        if hit.line.number > last
    ]
    if hung and not log.has(r"out of memory"):
        yield symptom(hits + hung[:1], confidence=0.85, severity="error")
    else:
        yield symptom(hits, confidence=0.4, severity="note")
