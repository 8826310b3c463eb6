"""The file is not in the encoding it was read with

## What it says

`UnicodeDecodeError: 'gbk' codec can't decode byte` (or utf-8, ascii, charmap). Of fitune: `no other encoding fits
the file either`, `this is no text file`, or `its lines are in two encodings`.

## Why

`open()` without an encoding uses the system's: GBK on a Chinese Windows, and the file is UTF-8; or the file is
GB18030 or UTF-16 and was read as UTF-8. fitune tries these itself; what is left are files that are no text (pictures,
PDF, old Excel files under another name) and files that were joined from parts in two encodings.

## How to know

The message names the codec, the byte and its position; a file that starts with `ef bb bf` is UTF-8 with a mark.

## How to fix

Read with the right encoding, `open(path, encoding="utf-8-sig")` or `encoding="gb18030"`; `fitune check FILE`
finds and names it. For a whole program: `PYTHONUTF8=1`. For a file in two encodings fitune prints a command that makes
one in UTF-8 of it, line by line; converting such a file as a whole destroys one of its parts.

## How safe

Safe, as long as you do not add `errors="ignore"`: that drops characters and shifts every offset.

## Sources

ProHiryu/bert-chinese-ner#49 ; modelscope/ms-swift#686 ; https://docs.python.org/3/library/functions.html#open
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
SAFETY = "safe"
COMMAND = "fitune check FILE"
PATTERNS = (
    r"Unexpected UTF-8 BOM",
    r"UnicodeDecodeError: '[\w-]+' codec can'?t decode",
    r"'(?:gbk|utf-?8|gb2312|ascii|charmap|cp936)' codec can'?t decode byte",
)


def read(log: Log) -> Iterator[Symptom]:
    """The file is not in the encoding it was read with, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)
    text = _("clean it once: text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')")
    title = _("The text holds half of an emoji (a lone surrogate)")
    fix = Fix(safety="display", text=text)
    yield from matches(log, (r"surrogates not allowed",), confidence=0.96, title=title, fixes=(fix,))
