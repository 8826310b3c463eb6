"""The hub refused the upload or did not answer

## What it says

No valid login, no right to write there, or no network.

## Why

Uploading needs a token with the right to write.

## How to know

The message names the file or folder.

## How to fix

Log in first: `hf auth login` (ModelScope: `modelscope login`).

## How safe

Safe.

## Sources

fitune: predicting/pushing
"""

SEVERITY = "error"
