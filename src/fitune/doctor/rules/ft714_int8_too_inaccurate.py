"""int8 loses too much

## What it says

The score on the development set drops by more than is allowed.

## Why

Eight bits are too few for some layers of this model.

## How to know

The message names the file or folder.

## How to fix

Export without `--int8`, or allow more with `--max-drop`.

## How safe

Unsafe: the model becomes worse.

## Sources

fitune: predicting/export ; microsoft/onnxruntime#8660
"""

SEVERITY = "error"
