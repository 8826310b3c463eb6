"""Memory grows step by step until it is full

## What it says

Logged memory rises with every reading and never falls; the run dies of out-of-memory in the end.

## Why

Something keeps tensors alive: `total_loss += loss` without `.item()`, outputs collected in a list, a figure of
every step with its graph, an exception held by a notebook.

## How to know

Several readings of memory in the log rise monotonically.

## How to fix

Add numbers, not tensors: `total += loss.item()`; detach what is collected (`.detach().cpu()`); `del` outputs at
the end of a step.

## How safe

Exact: no number changes.

## Sources

https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory ;
pytorch/pytorch#20433
"""

import ast
from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.memory_readings import growing_memory, grows_threefold
from fitune.doctor.oom import find_oom
from fitune.doctor.script import Script
from fitune.doctor.symptom import Symptom

SEVERITY = "error"


def read(log: Log) -> Iterator[Symptom]:
    """At least five rising memory readings that triple, or end in out of memory."""
    oom = find_oom(log)
    readings = growing_memory(log, oom.hits[0].line.number if oom else None)
    if readings and (oom or grows_threefold(readings)):
        yield symptom(
            [readings[0], readings[-1], *(oom.hits[:1] if oom else [])],
            confidence=0.95 if oom else 0.7,
            severity=None if oom else "warning",
        )


def check(script: Script) -> Iterator[Symptom]:
    """``total += loss``: the sum keeps every step's graph."""
    backward = {
        call.node.func.value.id
        for call in script.calls("backward")
        if isinstance(call.node.func, ast.Attribute) and isinstance(call.node.func.value, ast.Name)
    }
    for node in script.walk(ast.AugAssign):
        if (
            isinstance(node, ast.AugAssign)
            and isinstance(node.op, ast.Add)
            and isinstance(node.value, ast.Name)
            and node.value.id in backward
            and script.source(node.target) not in backward
        ):
            edits = [script.replace(node.value, f"{node.value.id}.item()")]
            yield script.symptom(node, edits=edits, severity="warning")
