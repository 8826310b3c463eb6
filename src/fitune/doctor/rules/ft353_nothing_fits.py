"""No setting fits this card

## What it says

Even the leanest fit needs more than the card has.

## Why

Weights, gradients and states of this model alone are near the card's memory, or one window is too long.

## How to know

The message names the setting and the value that stands there.

## How to fix

Choose a smaller model, a shorter `max_length`, or another card: `fitune plan FILE`.

## How safe

Unsafe: another model learns something else.

## Sources

fitune: planning
"""

SEVERITY = "error"
