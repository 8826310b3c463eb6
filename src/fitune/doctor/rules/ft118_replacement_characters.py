"""Characters were lost in an earlier conversion

## What it says

Texts hold U+FFFD.

## Why

The file was once read in the wrong encoding; the characters are gone.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Go back to the original file, if there is one.

## How safe

Safe.

## Sources

fitune: data/checking
"""

SEVERITY = "warning"
