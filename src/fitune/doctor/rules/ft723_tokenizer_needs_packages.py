"""The tokenizer cannot be built: a package or file is missing

## What it says

`Couldn't instantiate the backend tokenizer`, `requires the SentencePiece library`, `requires the protobuf
library`, `Tokenizer class ... does not exist`.

## Why

SentencePiece models need `sentencepiece` and `protobuf`; or the folder lacks tokenizer.json and vocab.txt.

## How to know

The message names the library.

## How to fix

Install them (`pip install sentencepiece protobuf`), and copy the tokenizer's files into the folder.

## How safe

Safe.

## Sources

https://huggingface.co/docs/transformers/main_classes/tokenizer
"""

from collections.abc import Iterator

from fitune.doctor.log import Log, matches
from fitune.doctor.symptom import Symptom

SEVERITY = "error"
SAFETY = "safe"
COMMAND = "pip install sentencepiece protobuf"
PATTERNS = (
    r"Converting from SentencePiece and Tiktoken failed|`?(?:tiktoken|sentencepiece|blobfile)`? (?:is|are"
    r"|library is|and .* are) required|You need to have sentencepiece",
    r"[Tt]okenizer cannot be instantiated\. Please make sure you have `?\w+`? installed",
    r"Couldn'?t instantiate the backend tokenizer",
    r"requires the (?:SentencePiece|protobuf|tiktoken|sacremoses) library|Tokenizer\w* requires the \S+ library",
    r"Tokenizer class \w+ does not exist or is not currently imported",
)


def read(log: Log) -> Iterator[Symptom]:
    """The tokenizer cannot be built, seen in a log."""
    yield from matches(log, PATTERNS, confidence=0.95)
