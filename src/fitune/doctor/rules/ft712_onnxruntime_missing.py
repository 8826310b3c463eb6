"""ONNX Runtime is not installed

## What it says

The exported model needs it.

## Why

It is an optional part.

## How to know

The message names the file or folder.

## How to fix

Type `pip install "fitune[export]"`.

## How safe

Safe.

## Sources

fitune: predicting/engines
"""

SEVERITY = "error"
