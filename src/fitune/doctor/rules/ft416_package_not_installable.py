"""pip or conda cannot install a package

## What it says

`Failed building wheel for tokenizers`, `can't find Rust compiler`, `PackagesNotFoundError`,
`ResolutionImpossible`, `externally-managed-environment`, `No matching distribution found for torch==2.1.0+cu118`.

## Why

There is no ready-made package for this Python and system, so pip tries to compile it; or the wanted versions
exclude each other; or the channel does not carry that version (PyPI and its mirrors have no `+cu118` builds); or the
system's own Python refuses.

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

from fitune.doctor.log import Log, matches, symptom
from fitune.doctor.pip_builds import builds_not_on_index
from fitune.doctor.symptom import Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"CondaHTTPError|Could not fetch URL https?://|Could not install packages due to an (?:OSError|EnvironmentError)",
    r"subprocess-exited-with-error|legacy-install-failure|pip\._vendor\S*(?:ReadTimeoutError|ConnectTimeoutError"
    r"|MaxRetryError)",
    r"No matching distribution found for (?!torch|transformers|tokenizers)|has no wheels with a matching platform tag",
    r"Failed building wheel for|Could not build wheels for|can't find Rust compiler|metadata-generation-failed",
    r"ResolvePackageNotFound|these package versions have conflicting dependencies",
    r"PackagesNotFoundError|UnsatisfiableError|LibMambaUnsatisfiableError|ResolutionImpossible",
    r"externally-managed-environment|Microsoft Visual C\+\+ 14\.0 or greater is required",
    r"THESE PACKAGES DO NOT MATCH THE HASHES",
)


def read(log: Log) -> Iterator[Symptom]:
    """pip or conda cannot install a package, seen in a log."""
    if hits := builds_not_on_index(log):
        package, version, build = hits[0].match.groups()
        text = _("take it from PyTorch's own index; PyPI and its mirrors have no builds with a + in their version")
        index = "https://download.pytorch.org/whl/" + build
        fix = Fix(safety="safe", text=text, command=f"pip install {package}=={version} --index-url {index}")
        title = _("The package index has no build +{build} of {package}", build=build, package=package)
        yield symptom(hits, confidence=0.95, title=title, fixes=(fix,))
    else:
        yield from matches(log, PATTERNS, confidence=0.9)
