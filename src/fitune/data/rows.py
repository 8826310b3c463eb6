"""Rows: what was read, how it was recognised, and every row that had to be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from fitune.data.schemes import Scheme, parse_tag, spans_to_tags
from fitune.messages import _
from fitune.values import Example, Source, Span
from fitune.values.base import Value

Task = Literal["ner", "classification"]
_PLACES = 3
"""Rows that are named for a note."""


class Format(Value):
    """How a file is written: enough to write another one the same way."""

    name: str
    """One of ``FORMATS``, such as ``cluener`` or ``columns``."""
    task: Task | None = None
    """None: the file holds texts alone."""
    encoding: str = "utf-8"
    """Python's name of the encoding; ``utf-8-sig`` is UTF-8 with a byte order mark."""
    newline: str = "\n"
    details: dict[str, Any] = Field(default_factory=dict)
    """What the format leaves open, such as the separator or the tag scheme; JSON values."""
    evidence: str = ""
    """For people, in their language: why the file was taken for this."""

    def with_details(self, **details: Any) -> Format:
        """The same format with some details replaced."""
        return self.model_copy(update={"details": {**self.details, **details}})


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row of the file that became no example, and why (a text for people)."""

    source: Source
    reason: str


@dataclass(frozen=True, slots=True)
class StrayTag:
    """A tag that the scheme does not allow behind the one before it. It was read as conlleval does."""

    source: Source
    """The row (sentence) that it stands in."""
    before: str
    """"" at the beginning of a sentence."""
    after: str
    """"" at the end of a sentence, inside an entity that was not closed."""


@dataclass(frozen=True, slots=True)
class MendedTag:
    """A tag that is another one once the row is written: stray tags change it, or one of its neighbours."""

    source: Source
    before: str
    after: str


@dataclass
class Tally:
    """What a reader counts while it reads one file."""

    file: str
    labelled: bool = True
    """False: the file is read for prediction, so a row without a label is kept."""
    classes: tuple[str, ...] = ()
    """Class names by number, where a file beside this one lists them."""
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    structure: Counter[str] = field(default_factory=Counter[str])
    """Lines that are no rows, by kind: ``header``, ``blank``, ``docstart``, ``comment``, ``bracket``."""
    notes: Counter[str] = field(default_factory=Counter[str])
    """A text for people -> how often it applied."""
    noted: dict[str, list[Source]] = field(default_factory=dict[str, list[Source]])
    """The same texts -> the first rows that they applied to; none, where a note is about the whole file."""
    stray_tags: list[StrayTag] = field(default_factory=list[StrayTag])
    mended_tags: list[MendedTag] = field(default_factory=list[MendedTag])
    rows: int = 0
    """Rows of the file, counted where each begins; examples and skipped ones together."""
    row: int | None = None
    """The number of the row at hand, where others share its line."""
    _unplaced: list[str] = field(default_factory=list[str])

    def at(self, line: int) -> Source:
        """The place of the row at hand, which begins in this line."""
        return Source(self.file, line, self.row)

    def skip(self, line: int, reason: str) -> None:
        """Count a row as left out."""
        source = self.at(line)
        self._place(source)
        self.skipped.append(Skipped(source, reason))

    def note(self, text: str, count: int = 1) -> None:
        """Count what was done to the row that comes next."""
        self.notes[text] += count
        if len(self.noted.get(text, ())) < _PLACES and text not in self._unplaced:
            self._unplaced.append(text)

    def placed(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples as they are; notes made since the one before get the row's place."""
        for example in examples:
            if self._unplaced and example.source is not None:
                self._place(example.source)
            yield example

    def _place(self, source: Source) -> None:
        for text in self._unplaced:
            self.noted.setdefault(text, []).append(source)
        self._unplaced.clear()

    def stray(
        self, line: int, tags: Sequence[str], positions: Sequence[int], spans: Iterable[Span], scheme: Scheme
    ) -> None:
        """Count the tags at these positions (see ``schemes.Decoded``) as stray; note what ``spans`` change."""
        source, row = self.at(line), ["", *tags, ""]
        self.stray_tags.extend(StrayTag(source, row[p], row[p + 1]) for p in positions)
        mark = next((tag[1] for tag in tags if len(tag) > 1), "-")
        for before, after in zip(tags, spans_to_tags(spans, len(tags), scheme, separator=mark), strict=True):
            if parse_tag(before) != parse_tag(after):
                self.mended_tags.append(MendedTag(source, before, after))


@dataclass
class Rows:
    """A file that was read. ``rows_in_file == len(examples) + len(skipped) + merged``."""

    examples: list[Example]
    task: Task | None
    multi_label: bool
    labels: tuple[str, ...]
    """Entity types, or classes: in the order of the class file where there is one, else sorted."""
    format: Format
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    notes: list[str] = field(default_factory=list[str])
    """What was recognised, repaired or converted; texts for people."""
    noted: Mapping[str, Sequence[Source]] = field(default_factory=dict[str, Sequence[Source]])
    """For those of the notes that are about single rows: the first of these rows."""
    stray_tags: list[StrayTag] = field(default_factory=list[StrayTag])
    """Every tag that may not follow the one before it."""
    mended_tags: list[MendedTag] = field(default_factory=list[MendedTag])
    """Every tag that is written otherwise than it was read, because of these."""
    structure: Mapping[str, int] = field(default_factory=dict[str, int])
    """Lines that are no rows (``header``, ``blank``, ``docstart``, ``comment``, ``bracket``), by kind."""
    rows_in_file: int = 0
    merged: int = 0
    """Rows joined to the one before them, in files that give each label of a text a row of its own."""


def whereabouts(source: Source) -> str:
    """A place for people: the row is named where the line does not tell it from others."""
    if source.row is None:
        return str(source)
    return _("{file}:{line} (row {row})", file=source.file, line=source.line, row=source.row)


def invalid_text(text: str) -> str | None:
    """Why a text cannot be used, or None: lone surrogates, which is also how undecodable bytes come in."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        if 0xDC80 <= code <= 0xDCFF:
            byte = f"{code - 0xDC00:02X}"
            return _("byte 0x{byte} is not valid in the file's encoding", byte=byte)
        name = f"{code:04X}"
        return _("half of a surrogate pair (U+{code}) stands alone in the text", code=name)
    return None
