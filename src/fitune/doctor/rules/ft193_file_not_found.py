r"""A file that the script names is not there

## What it says

`FileNotFoundError: [Errno 2] No such file or directory: 'data/train.json'`, or `Unable to find ...`.

## Why

The path is relative to the folder in which the command was typed, not to the script; or the name has another
case or ending.

## How to know

`ls` the folder named in the message.

## How to fix

Write a Windows path with r in front (`r"C:\Users\me\train.csv"`) or with `/`. Give the full path, or change
into the folder of the data before starting.

## How safe

Safe.

## Sources

https://docs.python.org/3/library/exceptions.html#FileNotFoundError
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT703"}
PATTERNS = (
    r"\[Errno 36\] File name too long|\[WinError 206\]",
    r"NotADirectoryError|IsADirectoryError|EmptyDatasetError|The directory at \S+ doesn't contain any data files"
    r"|\[Errno 22\] Invalid argument: '[A-Za-z]:",
    r"FileNotFoundError: \[(?:Errno 2|WinError [23])\]",
    r"FileNotFoundError: Unable to find|FileNotFoundError: Couldn't find"
    r"|No such file or directory: '[^']+\.(?:txt|jsonl?|csv|tsv|xlsx?|parquet|py|toml)'",
    r"unicode error\) 'unicodeescape' codec can't decode bytes",
    r"RuntimeError: File \S+ cannot be opened",
    r"Parent directory \S+ does not exist",
    r"can't open file '[^']+': \[Errno 2\]",
)
UNLESS = (
    r"tmp-checkpoint",
    r"lib\w+\.so|nvcc",
)


def read(log: Log) -> Iterator[Symptom]:
    """A file that the script names is not there, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.85, unless=UNLESS)
