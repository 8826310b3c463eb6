"""A step overflowed in fp16; training goes on in a safer precision

## What it says

The loss or gradient left fp16's range.

## Why

fp16 holds numbers up to 65,504 alone.

## How to know

The message names the step; the run's events.jsonl holds all of them.

## How to fix

Nothing to do: the step was repeated. On an Ampere card or newer choose bf16.

## How safe

Rounding alone.

## Sources

fitune: hf/trainer ; huggingface/transformers#9160
"""

SEVERITY = "note"
