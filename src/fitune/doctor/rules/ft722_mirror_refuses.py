"""The mirror answers, but not with the file

## What it says

403, 429, 5xx or time-outs from hf-mirror.com, `Distant resource does not seem to be on huggingface.co`.

## Why

The mirror limits how much one address may fetch, lacks the file, or strips the headers that huggingface_hub
checks.

## How to know

The URL in the message starts with the mirror's name, or `HF_ENDPOINT` is set.

## How to fix

Wait some minutes, or go another way: `unset HF_ENDPOINT`, ModelScope (`modelscope download ...`), or a folder
copied over (`--model /path/to/folder`).

## How safe

Safe.

## Sources

padeoe/hf-mirror-site#16 ; #55 ; amd-strix-halo-comfyui-toolboxes#27
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"Distant resource does not seem to be on huggingface\.co|FileMetadataError",
    r"(?:403|429|50[0-9])\b[^\n]*(?:hf-mirror|modelscope|aliendao)|(?:hf-mirror\.com"
    r"|modelscope\.cn)[^\n]*(?:\b403\b|\b429\b|\b50[0-9]\b|timed out|Max retries|Too Many Requests)",
    r"429 (?:Client Error|Too Many Requests)",
)


def read(log: Log) -> Iterator[Symptom]:
    """The mirror answers, but not with the file, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.97)
