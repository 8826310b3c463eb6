"""The program crashed below Python (segmentation fault)

## What it says

`Segmentation fault (core dumped)`, `Fatal Python error`, `exitcode: -11`, exit code 139, `0xC0000005` or
`0xC0000409`; there is no exception.

## Why

Compiled code failed: libraries built for another version (torch, numpy, tokenizers, a CUDA of its own), two
OpenMP runtimes, too small a stack, a damaged driver, or faulty memory.

## How to know

`python -X faulthandler train.py` prints the Python line at which it happens; if it is an import, the package
named there is the suspect.

## How to fix

Make a fresh virtual environment and install torch there with the line that `fitune doctor` prints; then only
what the script needs. If it still crashes, try `num_workers=0` and the CPU.

## How safe

Safe: the old environment stays as it is.

## Sources

https://docs.python.org/3/library/faulthandler.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT406", "FT409", "FT410", "FT533", "FT531", "FT532"}
SAFETY = "safe"
PATTERNS = (
    r"Segmentation fault\s*(?:\(|$)|(?:^|\d )\s*Segmentation fault\b|段错误\s*(?:\(|（|$)"
    r"|Fatal Python error: (?!Illegal)",
    r"(?:^|\d )\s*(?:Aborted|已放弃|已中止)\s*[(（]",
    r"exitcode\s*:\s*-(?:11|6|7)\b|Signal (?:11 \(SIGSEGV\)|6 \(SIGABRT\))|\bSIGSEGV\b",
    r"(?:exit(?:ed)?(?: with)?(?: code| status)?|退出码|返回码)\s*[:=]?\s*(?:139|134|-11"
    r"|-1073741819|-1073740791|-1073741676)\b",
    r"0xC0000(?:005|409|374|094|1D)\b|Access violation|double free or corruption"
    r"|free\(\): invalid pointer|malloc\(\): ",
)

NO_DISPLAY = r"qt\.qpa|Qt platform plugin|could not connect to display"
"""A window that cannot be opened aborts the program too."""


def read(log: Log) -> Iterator[Symptom]:
    """The program crashed below Python (segmentation fault), seen in a log."""
    hits = log.find(*PATTERNS)
    if hits and not log.has(NO_DISPLAY):
        # An abort after an uncaught C++ exception is the end of another story, which the log tells.
        follows = log.has(
            r"c10::\w*Error|DistBackendError|terminate called after throwing|device-side assert|out of memory"
        )
        yield symptom(hits, confidence=0.45 if follows else 0.86)
