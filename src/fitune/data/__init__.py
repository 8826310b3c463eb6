"""From files to what a model sees, and back: readers and writers, tag schemes, windows, checks. No torch."""

from fitune.data.alignment import Aligned, align
from fitune.data.coverage import Coverage, coverage
from fitune.data.encoder import Encoded, Encoder, FastEncoder
from fitune.data.reading import Stream, read, stream, write
from fitune.data.rows import Format, Rows, Skipped
from fitune.data.schemes import (
    SCHEMES,
    Decoded,
    Detected,
    Scheme,
    decode_tags,
    detect_scheme,
    flatten,
    invalid_transitions,
    spans_to_tags,
    tags_to_spans,
)
from fitune.data.windows import SPECIAL, Windows, merge, split

__all__ = [
    "SCHEMES",
    "SPECIAL",
    "Aligned",
    "Coverage",
    "Decoded",
    "Detected",
    "Encoded",
    "Encoder",
    "FastEncoder",
    "Format",
    "Rows",
    "Scheme",
    "Skipped",
    "Stream",
    "Windows",
    "align",
    "coverage",
    "decode_tags",
    "detect_scheme",
    "flatten",
    "invalid_transitions",
    "merge",
    "read",
    "spans_to_tags",
    "split",
    "stream",
    "tags_to_spans",
    "write",
]
