"""The folder holds no exported model

## What it says

The engine that was asked for has no file there.

## Why

Exporting is a step of its own.

## How to know

The message names the file or folder.

## How to fix

Make it: `fitune export RUN --to onnx`.

## How safe

Safe.

## Sources

fitune: predicting/engines
"""

SEVERITY = "error"
