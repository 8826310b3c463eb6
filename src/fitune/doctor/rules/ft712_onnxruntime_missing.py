"""The engine that the exported model needs is not installed

## What it says

ONNX Runtime or CTranslate2 runs the exported model, and it is not there.

## Why

Both are optional parts.

## How to know

The message names the file or folder.

## How to fix

Type `pip install "fitune[export]"` for ONNX Runtime, `pip install "fitune[ctranslate2]"` for CTranslate2.

## How safe

Safe.

## Sources

fitune: predicting/engines
"""

SEVERITY = "error"
