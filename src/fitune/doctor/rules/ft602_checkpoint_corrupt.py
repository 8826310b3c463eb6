"""A checkpoint or weights file is cut short or damaged

## What it says

`PytorchStreamReader failed`, `unexpected EOF, expected N more bytes`, `Error while deserializing header:
MetadataIncompleteBuffer`, `EOFError: Ran out of input`.

## Why

The process was killed, the disk was full or the download broke off while the file was written; the stock
Trainer does not write whole-or-absent.

## How to know

The size differs from the file's on the hub, or from its sister checkpoints.

## How to fix

Go on from the checkpoint before it (`fitune train` falls back by itself); for a downloaded model delete the
file and fetch it again.

## How safe

Safe: the steps since the older checkpoint are repeated.

## Sources

Lightning-AI/pytorch-lightning#688 ; huggingface/transformers#27820 ; #35580
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
FOLLOWS = {"FT601", "FT624", "FT727", "FT825"}
PATTERNS = (
    r"Invalid magic number; corrupt file",
    r"pickle data was truncated|metadata\.get\(.format.\)|'NoneType' object has no attribute 'get'.*metadata",
    r"is not a valid JSON file",
    r"PytorchStreamReader failed",
    r"unexpected EOF, expected \d+ more bytes|the file might be corrupted",
    r"could not parse ModelProto|sentencepiece_processor\.cc|DecodeError: Error parsing message",
    r"storage has wrong byte size: expected",
    r"Error while deserializing header|(?:Safetensor|SafetensorRust)Error(?!: Error while serializing)"
    r"|HeaderTooLarge|InvalidHeader|MetadataIncompleteBuffer",
    r"EOFError: Ran out of input|Consistency check failed: file should be of size",
    r"invalid load key, '(?!v')",
    r"not a ZIP archive|BadZipFile",
    r"Unable to load weights from pytorch checkpoint file",
)

STATE_FILES = r"trainer_state\.json|trainer_callback\.py|in load_from_json|in _dict_from_json_file|in _get_config_dict"


def read(log: Log) -> Iterator[Symptom]:
    """The readers' messages, and a state file that is not JSON."""
    hits = log.find(*PATTERNS)
    if not hits and log.has(r"JSONDecodeError"):
        hits = log.find(STATE_FILES)
    if hits:
        yield symptom(hits, confidence=0.93)
