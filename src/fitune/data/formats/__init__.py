"""One file a format, each with its recogniser, its reader and its writer."""

from fitune.data.formats.base import Columns, Sample, TextFormat
from fitune.data.formats.cluener import CLUENER
from fitune.data.formats.columns import COLUMNS
from fitune.data.formats.delimited import DELIMITED
from fitune.data.formats.plain import TEXT
from fitune.data.formats.records import RECORDS
from fitune.data.formats.tag_cells import TAG_CELLS

__all__ = ["ALIASES", "TEXT_FORMATS", "Columns", "Sample", "TextFormat"]

TEXT_FORMATS: tuple[TextFormat, ...] = (CLUENER, RECORDS, TAG_CELLS, COLUMNS, DELIMITED, TEXT)
"""In the order in which they are asked; each must refuse what a later one reads better."""

ALIASES = {
    "jsonl": "json",
    "msra": "tag-cells",
    "tsv": "csv",
    "conll": "columns",
    "bio": "columns",
    "bmes": "columns",
    "txt": "text",
    "plain": "text",
}
