"""The task does not report this metric

## What it says

`metric` names something that is never computed.

## Why

Refused before step 1 rather than after the first epoch.

## How to know

The message names the setting and the value that stands there.

## How to fix

Take one of the names in the message.

## How safe

Safe.

## Sources

fitune: training ; huggingface/transformers#28530
"""

SEVERITY = "error"
