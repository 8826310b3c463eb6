"""The file of prices cannot be read

## What it says

No such file, not TOML, or a field that is missing.

## Why

A price list of your own needs the fields of the sample in the message.

## How to know

The message names the file or folder.

## How to fix

Mend the line that is named, or start from the sample.

## How safe

Safe.

## Sources

fitune: catalog
"""

SEVERITY = "error"
