"""The model takes pairs of texts, or single ones

## What it says

A second text is missing, or there is one too many.

## Why

It was trained on the other kind.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Give a second text with every text, or leave it out.

## How safe

Safe.

## Sources

fitune: predicting
"""

SEVERITY = "error"
