r"""The data file does not have the shape it was read as

## What it says

`JSONDecodeError`, `Error tokenizing data. C error: Expected 2 fields in line 3`, `DatasetGenerationError`,
`ArrowInvalid`, `Couldn't cast`.

## Why

JSON lines were read as one JSON document (or the reverse), commas inside an unquoted text split a row, or two
rows have different columns.

## How to know

The message gives line and column; look at that line.

## How to fix

`fitune check FILE` recognises the format and names every bad row. In a script: `load_dataset("json", ...)` for
JSON lines, `sep="\t", quoting=3` for TSV with bare quotes.

## How safe

Safe; rows are named, none is dropped silently.

## Sources

https://pandas.pydata.org/docs/reference/api/pandas.read_csv.html ; https://huggingface.co/docs/datasets/loading
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches, symptom
from fitune.doctor.raised import find_raised
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
SAFETY = "safe"
COMMAND = "fitune check FILE"
PATTERNS = (
    r"Worksheet named .* not found|Excel file format cannot be determined|not an? (?:valid )?xlsx file|Trailing data",
    r"ValueError: Expected object or value|JSON parse error|lines=True.*only",
    r"JSONDecodeError: (?:Expecting|Extra data|Unterminated|Invalid|Unexpected(?! UTF-8 BOM))",
    r"Error tokenizing data\. C error",
    r"DatasetGenerationError|DatasetGenerationCastError|pyarrow\.lib\.Arrow(?:Invalid|TypeError)|Couldn't cast",
    r"XLRDError|EmptyDataError|No columns to parse from file|BadZipFile: File is not a zip file.*xlsx",
    r"_csv\.Error: |ParserError: ",
)
UNLESS = (
    r"trainer_state\.json|in load_from_json|in _dict_from_json_file|in _get_config_dict",
    r"Column \d+ named \S+ expected length \d+ but got",
)


def read(log: Log) -> Iterator[Symptom]:
    """The data file does not have the shape it was read as, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9, unless=UNLESS)
    raised = find_raised(log)
    if raised and raised.own and "split(" in raised.source and raised.name in {"ValueError", "IndexError"}:
        title = _("A line of the data has another number of fields than the script splits it into")
        yield symptom([raised.hit], confidence=0.88, title=title)
