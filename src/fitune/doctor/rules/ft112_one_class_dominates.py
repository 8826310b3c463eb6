"""One class has most of the rows

## What it says

Nearly all rows have one class.

## Why

Accuracy says little: always answering this class scores as much.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Look at macro-F1 (`metric = "macro_f1"`), and try `class_weights = "balanced"`.

## How safe

Unsafe: class weights change what is learned.

## Sources

fitune: data/checking
"""

SEVERITY = "note"
