"""This type of model is not converted to CTranslate2

## What it says

`fitune export --to ctranslate2` takes models of type "bert" only.

## Why

Other types have other embeddings and heads; none was compared with its trained model yet, and an export that is not
proved equal is not written.

## How to know

`model_type` in the model's `config.json`.

## How to fix

Export to ONNX, which takes every type: `fitune export RUN --to onnx`.

## How safe

Safe.

## Sources

fitune: predicting/ctranslate
"""

SEVERITY = "error"
