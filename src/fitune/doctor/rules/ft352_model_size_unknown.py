"""The model's size is not known

## What it says

The model is not on this disk, so nothing can be planned for it.

## Why

Planning reads the model's config.json.

## How to know

The message names the setting and the value that stands there.

## How to fix

Name its folder, or one of the models in the message.

## How safe

Safe.

## Sources

fitune: planning
"""

SEVERITY = "error"
