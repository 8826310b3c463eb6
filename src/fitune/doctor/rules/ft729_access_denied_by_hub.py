"""The hub wants a token for this model

## What it says

`GatedRepoError`, `Access to model ... is restricted`, `401 Client Error`, `Invalid user token`.

## Why

The model is gated (its terms must be accepted), private, or the stored token is old. bert-base-chinese needs no
token.

## How to know

Open the model's page in a browser while logged in.

## How to fix

Accept the terms on the model's page and type `hf auth login`; for a public model remove the bad token: `hf auth
logout`.

## How safe

Safe; keep the token out of scripts and logs.

## Sources

https://huggingface.co/docs/hub/models-gated
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
PATTERNS = (
    r"GatedRepoError|Cannot access gated repo|Access to model \S+ is restricted"
    r"|You are trying to access a gated repo",
    r"403 Forbidden: |You don't have the rights|403 Client Error: Forbidden for url: https://huggingface",
    r"Invalid (?:user )?(?:token(?! is found)|credentials in Authorization header)|Token is required"
    r"|User Access Token .* (?:expired|invalid)",
)


def read(log: Log) -> Iterator[Symptom]:
    """The hub wants a token for this model, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.96)
