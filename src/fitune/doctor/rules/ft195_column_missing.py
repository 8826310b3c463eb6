"""A column that the script uses is not in the data

## What it says

`KeyError: 'text'`, `Column name ['label'] not in the dataset`, `Column to remove ... not in the dataset`.

## Why

The file's columns have other names, or the first row was taken for the header.

## How to know

Print the columns: `dataset.column_names` or `df.columns`.

## How to fix

Name the column that exists: `fitune train data.csv --text-column 内容 --label-column 类别`, or rename it in the
script.

## How safe

Safe.

## Sources

https://huggingface.co/docs/datasets/process
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches, symptom
from fitune.doctor.raised import find_raised, missing_key
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"Columns? \[[^\]]*\] not in the dataset|Usecols do not match columns|'(?:DataFrame"
    r"|Series)' object has no attribute '(?:text|label|labels|content|sentence|review|tags)'",
    r"^\s*KeyError: ['\x22](?:text|label|labels|tokens|ner_tags|tags|sentence\d?|content|review|input_ids"
    r"|category|类别|内容|文本|标签)['\x22]",
    r"Column (?:name )?\[?.*\]? not in the dataset",
    r"\['[^\]]+'\] not (?:in index|found in axis)|None of \[.*\] are in the \[columns\]",
    r"Column to remove \[.*\] not in the dataset|Columns? \[?'[^']+'\]? (?:doesn't|do not) exist",
)


def read(log: Log) -> Iterator[Symptom]:
    """A column that the script uses is not in the data, seen in a log."""
    raised = find_raised(log)
    kind = missing_key(raised) if raised else ""
    if raised and kind == "column":
        yield symptom([raised.hit], confidence=0.95 if raised.frames else 0.7)
    elif not kind:
        yield from matches(log, PATTERNS, confidence=0.9)
