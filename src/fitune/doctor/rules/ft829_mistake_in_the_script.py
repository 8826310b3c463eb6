"""The script itself has a mistake

## What it says

`NameError`, `SyntaxError`, `IndentationError`, `UnboundLocalError`, `ZeroDivisionError`, or an `AttributeError`,
`TypeError`, `KeyError`, `IndexError` that a line of the script (not of a library) raises.

## Why

A name is misspelt or not defined yet, an import is missing, a colon or bracket is missing, an argument is missing,
or a value has another type than the line expects. Card, driver and installation have no part in it.

## How to know

The evidence names the line. In a notebook, cells that were run out of order give a `NameError`: restart the kernel
and run all.

## How to fix

Look at the line that the evidence names: spelling, imports, brackets, and what `print(type(x), x)` shows just above
it. `fitune diagnose train.py` reads the script itself.

## How safe

Only shown.

## Sources

https://docs.python.org/3/library/exceptions.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Hit, Line, Log, symptom
from fitune.doctor.raised import Raised, find_raised
from fitune.doctor.symptom import Symptom
from fitune.messages import _

SEVERITY = "error"
FALLBACK = True
ALWAYS = {"NameError", "SyntaxError", "IndentationError", "TabError", "UnboundLocalError", "ZeroDivisionError"}
IN_OWN_CODE = {
    "AttributeError",
    "TypeError",
    "KeyError",
    "IndexError",
    "ValueError",
    "AssertionError",
    "NotImplementedError",
    "RecursionError",
    "StopIteration",
}
USAGE = (
    r"error: (?:the following arguments are required|argument \S+: (?:invalid|expected)|unrecognized arguments)"
    r"|arguments are not used by the HfArgumentParser"
)


def read(log: Log) -> Iterator[Symptom]:
    """The last exception, when a line of the script raised it; any other finding of an error is the better one."""
    if hits := log.find(USAGE):
        yield symptom(hits, confidence=0.55, title=_("The command line lacks an argument, or has one too many"))
        return
    raised = find_raised(log)
    if raised is None or not (raised.name in ALWAYS or (raised.name in IN_OWN_CODE and _by_the_script(raised))):
        return
    title = _("The script itself has a mistake: {error}", error=raised.name)
    yield symptom([*_where(log, raised), raised.hit], confidence=0.35, title=title)


def _by_the_script(raised: Raised) -> bool:
    # os.environ raises from the standard library for a line of the script.
    if any(word in raised.words for word in ("LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES")):
        return True
    if raised.name == "AttributeError" and "object has no attribute" in raised.words:
        return True
    return raised.own and bool(raised.path)


def _where(log: Log, raised: Raised) -> list[Hit]:
    """The innermost line of the script's own code, when the log shows it."""
    text = raised.source
    line = next((line for line in reversed(log.lines) if text and text in line.text), None)
    if line is None or not raised.own:
        return []
    shown = Line(line.number, f"{raised.path}: {text}" if raised.path != "Cell" else text, line.rank)
    return [Hit(line, raised.hit.match, log.evidence(shown))]
