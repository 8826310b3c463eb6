"""LoRA is not available

## What it says

`lora_rank` is above 0.

## Why

The adapters are not part of this version.

## How to know

The message names the setting and the value that stands there.

## How to fix

Set `lora_rank` to 0.

## How safe

Safe.

## Sources

fitune: hf/knobs
"""

SEVERITY = "error"
