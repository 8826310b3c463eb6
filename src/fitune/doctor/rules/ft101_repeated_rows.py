"""Rows are there twice

## What it says

Rows repeat the text and the labels of an earlier row.

## Why

Repeated rows weigh more in training, and a split may put copies on both sides; a file joined from several is
the usual cause.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Keep the first of each: `fitune check FILE --fix OUT` does.

## How safe

Safe: one copy of every row stays.

## Sources

fitune: data/checking ; PriorLabs/TabPFN#814
"""

SEVERITY = "warning"
SAFETY = "safe"
