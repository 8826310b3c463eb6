"""8-bit AdamW needs bitsandbytes

## What it says

The package is not installed.

## Why

Its states in 8 bits live there.

## How to know

The message names the setting and the value that stands there.

## How to fix

Type `pip install bitsandbytes`, or choose `adamw_fused`.

## How safe

Rounding alone.

## Sources

fitune: hf/knobs
"""

SEVERITY = "error"
