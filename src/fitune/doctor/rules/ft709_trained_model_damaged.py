"""The trained model cannot be read

## What it says

A file is missing, cut short or of another version.

## Why

The copy was incomplete.

## How to know

The message names the file or folder.

## How to fix

Copy the folder again from where it was trained, or export or train again.

## How safe

Safe.

## Sources

fitune: tasks/saved
"""

SEVERITY = "error"
