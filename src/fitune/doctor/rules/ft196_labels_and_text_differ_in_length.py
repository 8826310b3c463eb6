"""A row has more labels than tokens, or fewer

## What it says

A bare `AssertionError` on two lengths, `Found input variables with inconsistent numbers of samples`, or `All
arrays must be of the same length`.

## Why

Spaces, digits or rare characters were merged or lost by the tokenizer while the labels still count characters;
or a row of the file lacks a tag.

## How to know

The assertion stands in the reading or aligning code; print the row.

## How to fix

`fitune check FILE` names row, column and character; fitune aligns through character offsets, which cannot
drift.

## How safe

Safe.

## Sources

macanv/BERT-BiLSTM-CRF-NER#180 ; ProHiryu/albert-chinese-ner#23 ; kamalkraj/BERT-NER#66
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
COMMAND = "fitune check FILE"


def read(log: Log) -> Iterator[Symptom]:
    """An assertion on lengths, or a library's complaint about them."""
    hits = log.find(
        r"assert len\(.+\) == (?:len\(|\w)",
        r"inconsistent numbers of samples|All arrays must be of the same length|len\(labels?\w*\) != len",
        r"boolean array indexing assignment cannot assign \d+ input values to",
        r"(?:labels?|tags|tokens|words|predictions)\b.{0,40}(?:different lengths?|differ in length|same length)"
        r"|[Ll]ength mismatch",
        r"AssertionError: .*(?:length|长度)|zip\(\) argument \d is (?:shorter|longer)",
    )
    aligned = log.find(r"(?:labels?|tags?)\w*\[\s*word_?i\w*\s*\]")
    if aligned and log.has(r"IndexError: list index out of range"):
        yield symptom(aligned, confidence=0.9)
    elif hits and log.has(r"AssertionError|ValueError|长度"):
        yield symptom(hits, confidence=0.85)
