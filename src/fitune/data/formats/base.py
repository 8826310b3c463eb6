"""What every format is: one object that recognises, reads and writes, so that the three cannot drift apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fitune.data.formats.beside import Place
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction, Refusal


@dataclass(frozen=True)
class Columns:
    """The user's word on which column is which; None: recognise it."""

    text: str | None = None
    text_pair: str | None = None
    label: str | None = None
    multi_label: bool | None = None
    labelled: bool = True
    """The file is to be learned from: where several columns could be the label, that is asked back."""

    def any(self) -> bool:
        return self.text is not None or self.text_pair is not None or self.label is not None


@dataclass(frozen=True)
class Sample:
    """The beginning of a file."""

    path: Path
    lines: list[str]
    """Whole lines without their ends."""
    text: str
    """The same characters, with line ends; it may go on after the last whole line."""
    whole: bool
    """Nothing follows in the file."""
    columns: Columns = field(default_factory=Columns)
    task: str | None = None
    """Overrules what the content says, where both tasks are possible."""
    forced: bool = False
    """The user named the format: a recogniser may be generous."""

    @property
    def labelled(self) -> bool:
        return self.columns.labelled


@dataclass(frozen=True)
class TextFormat:
    """One way to write examples as text."""

    name: str
    recognize: Callable[[Sample], Format | None]
    """The format with its details and evidence, or None when the sample does not look like it."""
    parse: Callable[[Iterable[str], Format, Tally], Iterator[Example]]
    """Examples from the lines of a file; all other rows go to the tally."""
    dump: Callable[..., Iterator[str]]
    """Lines, without their ends, from examples or predictions and a Format; with ``rows``, a ``Beside`` of these as the
    third argument, from which each line starts."""
    rows: Callable[[Iterable[str], Format], Iterator[tuple[Place, Any]]] | None = None
    """(place, row as it stands there) from the lines of a file, where a row holds more than text and label."""


@dataclass(frozen=True)
class PathFormat:
    """A format that is no single text file: it opens and writes its files itself."""

    name: str
    recognize: Callable[[Path, Columns, bool], Format | None]
    """(path, columns, forced) -> the format, or None."""
    parse: Callable[[Path, Format, Tally], Iterator[Example]]
    write: Callable[[Path, Iterable[Example | Prediction], Format, Path | None], None]
    """(path, items, format, original): writes the file, or several that belong together; what stood beside the items in
    the original, where there is one, is carried over."""
    files: int = 1


def not_expressible(item: Example | Prediction, format_name: str, what: str) -> Refusal:
    """A text that the format has no way to hold."""
    return Refusal(
        _("the format {format} cannot hold {what}: {text}", format=format_name, what=what, text=repr(item.text[:60])),
        where=str(item.source or ""),
        next_step=_("Choose an output file that ends in .jsonl"),
        code="FT198",
    )


def one_line(item: Example | Prediction, format_name: str, *, forbidden: str = "") -> str:
    """The text, when it has no line break and no forbidden character; else Refusal."""
    text = item.text
    if "\n" in text or "\r" in text:
        raise not_expressible(item, format_name, _("a line break"))
    for character in forbidden:
        if character in text:
            raise not_expressible(item, format_name, repr(character))
    return text
