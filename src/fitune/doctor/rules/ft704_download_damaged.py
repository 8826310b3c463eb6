"""A downloaded file arrived damaged

## What it says

Its hash is not the one that the hub states.

## Why

A broken connection, or a mirror that changed the file.

## How to know

The message names the file or folder.

## How to fix

Type the command again; the damaged file was removed.

## How safe

Safe.

## Sources

fitune: hf/hub
"""

SEVERITY = "error"
