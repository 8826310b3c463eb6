"""The model does not offer this attention kernel

## What it says

`attention` names a kernel that this model or this installation lacks; in scripts `FlashAttention2 has been toggled
on, but it cannot be used`, `FlashAttention only supports Ampere GPUs or newer`.

## Why

Kernels differ by architecture, card and installed packages.

## How to know

The message names the setting and the value that stands there, or the package that is missing.

## How to fix

Set `attention` to sdpa, or leave it out; in a script `attn_implementation="sdpa"`.

## How safe

Exact: kernels differ in rounding alone.

## Sources

fitune: tasks/assembling
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"

PATTERNS = (
    r"FlashAttention2? ?(?:2 )?has been toggled on, but it cannot be used",
    r"FlashAttention only supports Ampere GPUs or newer|Flash ?Attention 2(?:\.0)? only supports? (?:dtype|torch)",
    r"does not support (?:Flash Attention 2(?:\.0)?|an attention implementation through) ?",
    r"FlashAttention only supports? (?:fp16|head dim)",
    r"package flash_attn seems to be not installed",
)


def read(log: Log) -> Iterator[Symptom]:
    """The attention kernel is not there, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)
