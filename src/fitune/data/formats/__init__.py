"""One file a format, each with its recogniser, its reader and its writer."""

from fitune.data.formats.base import Columns, PathFormat, Sample, TextFormat
from fitune.data.formats.cluener import CLUENER
from fitune.data.formats.columns import COLUMNS
from fitune.data.formats.delimited import DELIMITED
from fitune.data.formats.fasttext import FASTTEXT
from fitune.data.formats.inline import INLINE
from fitune.data.formats.label_studio import LABEL_STUDIO
from fitune.data.formats.parallel import PARALLEL
from fitune.data.formats.plain import TEXT
from fitune.data.formats.records import RECORDS
from fitune.data.formats.sheets import EXCEL, PARQUET
from fitune.data.formats.spans import SPANS
from fitune.data.formats.tag_cells import TAG_CELLS
from fitune.data.formats.token_lists import TOKEN_LISTS
from fitune.data.formats.word_tag import WORD_TAG

__all__ = ["ALIASES", "PATH_FORMATS", "TEXT_FORMATS", "Columns", "PathFormat", "Sample", "TextFormat"]

PATH_FORMATS: tuple[PathFormat, ...] = (EXCEL, PARQUET, PARALLEL)
"""Asked before the text formats, in this order."""

TEXT_FORMATS: tuple[TextFormat, ...] = (
    CLUENER,
    LABEL_STUDIO,
    SPANS,
    TOKEN_LISTS,
    RECORDS,
    FASTTEXT,
    TAG_CELLS,
    COLUMNS,
    WORD_TAG,
    INLINE,
    DELIMITED,
    TEXT,
)
"""In the order in which they are asked; each must refuse what a later one reads better."""

ALIASES = {
    "jsonl": "json",
    "doccano": "spans",
    "labelstudio": "label-studio",
    "fast-text": "fasttext",
    "msra": "tag-cells",
    "tsv": "csv",
    "conll": "columns",
    "bio": "columns",
    "bmes": "columns",
    "pku": "word-tag",
    "xlsx": "excel",
    "txt": "text",
    "plain": "text",
}
