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

from fitune.doctor.log import Log, symptom
from fitune.doctor.raised import went_on
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
PATTERNS = (
    r"Distant resource does not seem to be on huggingface\.co|FileMetadataError",
    r"\b(?:403|429|50[0-9]) (?:Client Error|Server Error|Forbidden|Too Many|Bad Gateway"
    r"|Service)[^\n]*(?:hf-mirror|modelscope|aliendao)"
    r"|HTTP (?:Error|status code) \(?(?:403|429|50[0-9])\b[^\n]*(?:hf-mirror|modelscope|aliendao)",
    r"(?:hf-mirror\.com|modelscope\.cn)[^\n]*(?:\((?:403|429|50[0-9])|(?:status|code|error)\D{0,12}(?:403|429"
    r"|50[0-9])\b"
    r"|(?:Read |connection )?timed out|Max retries|Too Many Requests|429 Client)",
    r"429 (?:Client Error|Too Many Requests)",
)


def read(log: Log) -> Iterator[Symptom]:
    """The mirror answers, but not with the file, seen in a log."""
    hits = log.find(*PATTERNS)
    if hits:
        over = went_on(log, hits[-1].line.number)
        yield symptom(hits, confidence=0.5 if over else 0.97, severity="note" if over else None)
