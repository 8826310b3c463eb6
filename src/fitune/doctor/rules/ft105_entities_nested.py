"""Entities lie inside other entities

## What it says

An inner entity shares all its characters with an outer one.

## Why

One tag a character cannot hold both: the outer one is kept.

## How to know

The finding names file and line of the first rows; `fitune check FILE` shows them again.

## How to fix

Leave it when these are few; otherwise label the inner ones in a file of their own.

## How safe

Safe.

## Sources

fitune: data/checking ; RasaHQ/rasa#1048
"""

SEVERITY = "note"
SAFETY = "safe"
