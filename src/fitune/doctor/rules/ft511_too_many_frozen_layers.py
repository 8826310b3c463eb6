"""More layers are frozen than the model has

## What it says

`frozen_layers` is above the number of layers.

## Why

Layers are counted from the input.

## How to know

The message names the setting and the value that stands there.

## How to fix

Choose at most the number that the message names.

## How safe

Unsafe: a learning choice.

## Sources

fitune: hf/knobs
"""

SEVERITY = "error"
