"""A setting has no meaning for this head or these labels

## What it says

Class weights or label smoothing with a CRF, or weights for labels that the data does not have.

## Why

A CRF's loss is that of whole sequences.

## How to know

The message names the setting and the value that stands there.

## How to fix

Set `head` to softmax, or leave the setting out.

## How safe

Unsafe: learning choices.

## Sources

fitune: tasks/assembling
"""

SEVERITY = "error"
