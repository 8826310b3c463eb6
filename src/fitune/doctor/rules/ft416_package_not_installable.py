"""pip or conda cannot install a package

## What it says

`Failed building wheel for tokenizers`, `can't find Rust compiler`, `PackagesNotFoundError`,
`ResolutionImpossible`, `externally-managed-environment`.

## Why

There is no ready-made package for this Python and system, so pip tries to compile it; or the wanted versions
exclude each other; or the channel does not carry that version; or the system's own Python refuses.

## How to know

`python --version` and `pip --version`; the first line with `error` above the last one names the package.

## How to fix

Make a fresh virtual environment with Python 3.10 to 3.12 (`python -m venv ~/fitune-env`), upgrade pip there
(`python -m pip install -U pip`), and install current versions instead of the pinned ones.

## How safe

Safe: the old environment stays as it is.

## Sources

https://packaging.python.org/en/latest/tutorials/installing-packages/
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"CondaHTTPError|Could not fetch URL https?://|Could not install packages due to an (?:OSError|EnvironmentError)",
    r"subprocess-exited-with-error|legacy-install-failure|pip\._vendor\S*(?:ReadTimeoutError|ConnectTimeoutError"
    r"|MaxRetryError)",
    r"No matching distribution found for (?!torch|transformers|tokenizers)",
    r"Failed building wheel for|Could not build wheels for|can't find Rust compiler|metadata-generation-failed",
    r"PackagesNotFoundError|UnsatisfiableError|LibMambaUnsatisfiableError|ResolutionImpossible",
    r"externally-managed-environment|Microsoft Visual C\+\+ 14\.0 or greater is required",
    r"THESE PACKAGES DO NOT MATCH THE HASHES",
)


def read(log: Log) -> Iterator[Symptom]:
    """pip or conda cannot install a package, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.9)
