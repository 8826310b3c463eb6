"""No card of the catalogue is seen here

## What it says

There is no card, or one that the catalogue does not list.

## Why

The plan for "this machine" needs to know the card.

## How to know

The message names the setting and the value that stands there.

## How to fix

Look with `fitune doctor`, or name a card: `fitune plan FILE --card rtx3060-12g`.

## How safe

Safe.

## Sources

fitune: cli/plan
"""

SEVERITY = "error"
