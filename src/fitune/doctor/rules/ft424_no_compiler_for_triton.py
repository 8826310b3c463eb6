"""torch.compile finds no Triton or no C compiler

## What it says

`Cannot find a working triton installation`, `TritonMissing`, `Failed to find C compiler`.

## Why

torch.compile generates Triton kernels and needs Triton (missing on Windows) and gcc.

## How to know

It runs without `torch_compile=True`.

## How to fix

Switch it off: `torch_compile=False`; it seldom pays for runs of minutes. Or install gcc.

## How safe

Rounding at most.

## Sources

https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
SETTINGS = {"compile": False}
PATTERNS = (
    r"libcuda\.so cannot found|libcuda_dirs|PassManager::run failed|Cannot find (?:a working )?ptxas"
    r"|BackendCompilerFailed",
    r"Cannot find a working triton installation|TritonMissing",
    r"Failed to find C compiler|triton is not available|No module named 'triton'(?!\.)",
)


def read(log: Log) -> Iterator[Symptom]:
    """torch.compile finds no Triton or no C compiler, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)
