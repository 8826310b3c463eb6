"""From files to what a model sees, and back: readers and writers, tag schemes, windows, checks. No torch."""

from fitune.data.alignment import Aligned, align
from fitune.data.checking import (
    KINDS,
    Change,
    Check,
    SplitStatistics,
    TokenStatistics,
    check,
    leaked,
    missing_labels,
    repair,
    summary,
)
from fitune.data.coverage import Coverage, coverage
from fitune.data.division import split_dev
from fitune.data.encoder import Encoded, Encoder, FastEncoder
from fitune.data.fallback import SlowEncoder, probe
from fitune.data.normalization import lacks_capitals, lowercase_map, quote_map
from fitune.data.projection import IGNORED, Expressed, Projected, characters, heads_of_words, project, targets
from fitune.data.reading import Stream, read, stream
from fitune.data.rows import Format, Rows, Skipped, whereabouts
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
from fitune.data.writing import write

__all__ = [
    "IGNORED",
    "KINDS",
    "SCHEMES",
    "SPECIAL",
    "Aligned",
    "Change",
    "Check",
    "Coverage",
    "Decoded",
    "Detected",
    "Encoded",
    "Encoder",
    "Expressed",
    "FastEncoder",
    "Format",
    "Projected",
    "Rows",
    "Scheme",
    "Skipped",
    "SlowEncoder",
    "SplitStatistics",
    "Stream",
    "TokenStatistics",
    "Windows",
    "align",
    "characters",
    "check",
    "coverage",
    "decode_tags",
    "detect_scheme",
    "flatten",
    "heads_of_words",
    "invalid_transitions",
    "lacks_capitals",
    "leaked",
    "lowercase_map",
    "merge",
    "missing_labels",
    "probe",
    "project",
    "quote_map",
    "read",
    "repair",
    "spans_to_tags",
    "split",
    "split_dev",
    "stream",
    "summary",
    "tags_to_spans",
    "targets",
    "whereabouts",
    "write",
]
