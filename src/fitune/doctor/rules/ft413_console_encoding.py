"""The console cannot write Chinese

## What it says

`UnicodeEncodeError: 'gbk' codec can't encode character` (or ascii, charmap, latin-1).

## Why

Python writes in the console's code page; an emoji or a rare character is not in it, or the locale is POSIX/C.

## How to know

`python -c "import sys; print(sys.stdout.encoding)"` is not utf-8.

## How to fix

Set `PYTHONUTF8=1` (Windows: `set PYTHONUTF8=1`, PowerShell: `$env:PYTHONUTF8=1`) before Python starts; on Linux
`export LANG=C.UTF-8`.

## How safe

Safe, but `open()` without an encoding then reads UTF-8 everywhere.

## Sources

https://docs.python.org/3/library/os.html#utf8-mode
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
TOPIC = "console"
SAFETY = "safe"
COMMAND = "export PYTHONUTF8=1"
PATTERNS = (r"UnicodeEncodeError: '(?:gbk|gb2312|ascii|charmap|cp\d+|latin-1|mbcs)' codec can'?t encode",)


def read(log: Log) -> Iterator[Symptom]:
    """The console cannot write Chinese, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)


def examine(machine: Machine) -> Iterator[Symptom]:
    """A console that is not UTF-8."""
    if machine.console_encoding.replace("-", "").replace("_", "").lower() not in {"utf8", "utf8sig", "cp65001"}:
        command = "set PYTHONUTF8=1" if machine.system == "windows" else "export PYTHONUTF8=1"
        text = _("write UTF-8: set PYTHONUTF8=1 before Python starts")
        yield Symptom(
            evidence=(_("the console writes {encoding}", encoding=machine.console_encoding),),
            severity="warning",
            fixes=(Fix(safety="safe", text=text, command=command),),
        )
