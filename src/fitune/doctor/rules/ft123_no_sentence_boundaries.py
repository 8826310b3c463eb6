"""Sentences without a blank line between them

## What it says

One sentence of a file of columns has more than a thousand characters, with many full stops in it.

## Why

In columns of characters and tags a blank line ends a sentence. Without them the whole file is one row: it cannot be
split into train and dev, and is cut wherever a window ends.

## How to know

`fitune check FILE` says how many rows it read and how long the sentence is.

## How to fix

Put a blank line after each sentence, for example after each line whose character is 。, ！ or ？; or export again with
sentences kept apart.

## How safe

Display only: where sentences end is for you to say.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
