"""Window length or overlap is impossible

## What it says

`max_length` above what the model takes, too small for the special tokens, or an overlap above half a window.

## Why

A model has a fixed number of positions.

## How to know

The message names the setting and the value that stands there.

## How to fix

Choose the value that the message names; longer texts are split, so a smaller one loses nothing.

## How safe

Safe.

## Sources

fitune: data/windows
"""

SEVERITY = "error"
