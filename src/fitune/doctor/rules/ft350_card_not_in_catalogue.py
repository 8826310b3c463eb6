"""The catalogue has no such card

## What it says

The name is not one of the ids.

## Why

A typing error, or a card that is not listed yet.

## How to know

The message names the setting and the value that stands there.

## How to fix

Take one of the names in the message; `fitune cards` lists all.

## How safe

Safe.

## Sources

fitune: catalog
"""

SEVERITY = "error"
