"""``read`` a file in whatever format it is, or ``stream`` it row by row; ``writing`` is the way back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from fitune.data.encodings import Encoding, read_lines, recognize_encoding
from fitune.data.formats import ALIASES, PATH_FORMATS, TEXT_FORMATS, Columns, PathFormat, Sample, TextFormat
from fitune.data.formats.json_objects import json_without_text
from fitune.data.label_rows import join_label_rows
from fitune.data.rows import Format, Rows, Skipped, Tally, Task, invalid_text, whereabouts
from fitune.messages import _, system_reason
from fitune.values import Example, Refusal, Source

_SAMPLE_CHARACTERS = 1 << 18
_SAMPLE_LINES = 5000
# First bytes of files that hold no plain text, and what to do with them.
_SIGNATURES = (
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ", "xz", "unxz"),
    (b"7z\xbc\xaf", "7-Zip", "7z x"),
    (b"Rar!", "RAR", "unrar x"),
)


@dataclass
class Stream:
    """The rows of a file, one at a time, in memory that does not grow with the file (formats with one row a line).

    ``skipped`` and ``notes`` fill up while it is iterated.
    """

    path: Path
    format: Format
    examples: Iterator[Example]
    tally: Tally

    def __iter__(self) -> Iterator[Example]:
        return self.tally.placed(self.examples)

    @property
    def skipped(self) -> list[Skipped]:
        return self.tally.skipped

    @property
    def notes(self) -> list[str]:
        return list(self._notes().values())

    @property
    def noted(self) -> dict[str, list[Source]]:
        """The notes that are about single rows, with the first of these."""
        notes = self._notes()
        return {notes[text]: places for text, places in self.tally.noted.items()}

    def _notes(self) -> dict[str, str]:
        return {text: f"{text} ({count})" for text, count in self.tally.notes.items()}


def read(
    path: str | os.PathLike[str],
    *,
    format: str | Format | None = None,
    task: Task | None = None,
    text_column: str | None = None,
    text_pair_column: str | None = None,
    label_column: str | None = None,
    multi_label: bool | None = None,
) -> Rows:
    """Every row of a file: an example, or counted in ``skipped`` with its reason.

    The format is recognised from the content; ``format`` (a name, or the ``Format`` of another file) and the columns
    overrule that. Columns are named, or numbered from 1. Raises Refusal when the file cannot be read as a whole.
    """
    opened = stream(
        path,
        format=format,
        task=task,
        text_column=text_column,
        text_pair_column=text_pair_column,
        label_column=label_column,
        multi_label=multi_label,
        labelled=True,
    )
    examples = list(opened)
    tally = opened.tally
    if not examples:
        raise _nothing_read(opened)
    found = opened.format
    if label_column is None and not isinstance(format, Format) and (names := found.details.get("label_names")):
        tally.note(
            _("columns of 0 and 1, each read as a label that the row has or not: {names}", names=", ".join(names)),
            len(examples),
        )
    merged = 0
    several = found.task == "classification" and any(len(example.labels or ()) != 1 for example in examples)
    # A format that is handed over says itself whether each label has a row of its own.
    asked = bool(format.details.get("row_per_label")) if isinstance(format, Format) else multi_label
    if found.task == "classification" and not several and asked is not False and multi_label is not False:
        joined = join_label_rows(examples, asked=bool(asked))
        if joined is not None:
            merged, examples, several = len(examples) - len(joined), joined, True
            tally.note(_("rows joined to the one before: the file gives each label of a text a row of its own"), merged)
            found = found.with_details(row_per_label=True)
    return Rows(
        examples=examples,
        task=found.task,
        multi_label=(several if multi_label is None else multi_label) and found.task == "classification",
        labels=_labels(examples, found),
        format=found,
        skipped=tally.skipped,
        notes=opened.notes,
        noted=opened.noted,
        stray_tags=tally.stray_tags,
        mended_tags=tally.mended_tags,
        structure=dict(tally.structure),
        rows_in_file=tally.rows,
        merged=merged,
    )


def stream(
    path: str | os.PathLike[str],
    *,
    format: str | Format | None = None,
    task: Task | None = None,
    text_column: str | None = None,
    text_pair_column: str | None = None,
    label_column: str | None = None,
    multi_label: bool | None = None,
    labelled: bool = False,
) -> Stream:
    """The rows of a file one by one. With ``labelled=False`` rows without a label are kept: nothing is learned."""
    place = Path(path)
    if task is not None and task not in get_args(Task):
        raise Refusal(
            _("there is no task {name}", name=repr(task)),
            where="--task",
            next_step=_("Tasks: {names}", names=", ".join(get_args(Task))),
            code="FT199",
        )
    _check_file(place)
    columns = Columns(text_column, text_pair_column, label_column, multi_label, labelled)
    tally = Tally(str(place), labelled=labelled)
    opened = _open_path(place, format, columns)
    if opened is not None:
        found, reader = opened
        examples, checked = reader.parse(place, found, tally), False
    else:
        if place.is_dir():
            raise Refusal(_("this is a folder, not a file"), where=str(place), next_step=_("Name a file in it"))
        expected = format.encoding if isinstance(format, Format) else None
        encoding = recognize_encoding(place, expected)
        if isinstance(format, Format):
            found, text_reader = format, text_format(format.name)
        else:
            found, text_reader = _recognize(_sample(place, encoding, columns, task), format)
        found = found.model_copy(update={"encoding": encoding.name, "newline": encoding.newline})
        examples = text_reader.parse(read_lines(place, encoding), found, tally)
        checked = encoding.damaged or "container" in found.details
    if task is not None and found.task is not None and found.task != task:
        raise _other_task(place, found, task)
    return Stream(place, found, _valid(examples, tally) if checked else examples, tally)


def _open_path(path: Path, format: str | Format | None, columns: Columns) -> tuple[Format, PathFormat] | None:
    """The format and reader of a file that is no single text file, or None."""
    name = format.name if isinstance(format, Format) else format
    wanted = ALIASES.get(name.lower(), name.lower()) if name is not None else None
    for reader in PATH_FORMATS:
        if wanted is not None and wanted != reader.name:
            continue
        if path.is_dir() and reader.name != "parallel":
            continue
        if isinstance(format, Format):
            return format, reader
        found = reader.recognize(path, columns, wanted is not None)
        if found is not None:
            return found, reader
        if wanted is not None:
            raise _not_that_format(path, wanted)
    return None


def _check_file(path: Path) -> None:
    if not path.exists():
        raise Refusal(
            _("there is no such file"), where=str(path), next_step=_("Check the path: ls {folder}", folder=path.parent)
        )
    if path.is_dir():
        return
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise Refusal(
            _("the file cannot be opened: {problem}", problem=system_reason(error)),
            where=str(path),
            next_step=_("Check its permissions: ls -l {path}", path=path),
        ) from None
    if not head:
        raise Refusal(_("the file is empty"), where=str(path), next_step=_("Name a file with rows in it"), code="FT192")
    for signature, name, command in _SIGNATURES:
        if head.startswith(signature):
            raise Refusal(
                _("this is a {kind} archive", kind=name),
                where=str(path),
                next_step=_("Unpack it first: {command} {path}", command=command, path=path),
                code="FT192",
            )


def _sample(path: Path, encoding: Encoding, columns: Columns, task: str | None) -> Sample:
    lines: list[str] = []
    size = 0
    whole = True
    for line in read_lines(path, encoding):
        if len(lines) >= _SAMPLE_LINES or size >= _SAMPLE_CHARACTERS:
            whole = False
            break
        lines.append(line)
        size += len(line) + 1
    if sum(line.count("\0") for line in lines) > 0.1 * size:
        raise Refusal(
            _("this is no text file: it is full of zero bytes"),
            where=str(path),
            next_step=_("Name the file with the texts; what is this one? file {path}", path=path),
            code="FT192",
        )
    if lines and lines[0].startswith("\ufeff"):
        lines[0] = lines[0][1:]
    return Sample(path, lines, "\n".join(lines), whole, columns, task)


def text_format(name: str) -> TextFormat:
    """By its name or an alias of it. Raises Refusal (FT199) for another."""
    wanted = ALIASES.get(name.lower(), name.lower())
    for reader in TEXT_FORMATS:
        if reader.name == wanted:
            return reader
    raise Refusal(
        _("there is no format {name}", name=repr(name)),
        where="--format",
        next_step=_("Formats: {names}", names=_names()),
        code="FT199",
    )


def _names() -> str:
    """Every format, with the names that it also goes by."""
    also: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        also.setdefault(name, []).append(alias)
    names = [reader.name for reader in (*TEXT_FORMATS, *PATH_FORMATS)]
    return ", ".join(f"{name} ({', '.join(also[name])})" if name in also else name for name in names)


def _not_that_format(path: Path, name: str) -> Refusal:
    return Refusal(
        _("the file does not look like the format {name}", name=name),
        where=str(path),
        next_step=_("Leave out --format to let fitune recognise it"),
        code="FT199",
    )


def _recognize(sample: Sample, name: str | None) -> tuple[Format, TextFormat]:
    if name is not None:
        name, _comma, options = name.partition(",")
        reader = text_format(name)
        found = reader.recognize(replace(sample, forced=True))
        if found is None:
            raise _not_that_format(sample.path, name)
        return _with_options(found, options), reader
    other: Format | None = None
    for reader in TEXT_FORMATS:
        if other is not None and reader.name == "text":
            # Lines can be read of anything: that the file is for the other task says more.
            raise _other_task(sample.path, other, str(sample.task))
        found = reader.recognize(sample)
        fits = found is not None and (sample.task in (None, found.task) or (found.task is None and other is None))
        if found is not None and fits:
            return found, reader
        other = other or found
        if reader.name == "json" and (refusal := json_without_text(sample)):
            raise _other_task(sample.path, other, str(sample.task)) if other is not None else refusal
    raise Refusal(
        _("no format was recognised"),
        where=str(sample.path),
        next_step=_("Name it with --format: {names}", names=_names()),
        code="FT199",
    )


def _with_options(format: Format, options: str) -> Format:
    """``--format spans,ends=inclusive``: details by hand."""
    details: dict[str, Any] = {}
    for option in filter(None, options.split(",")):
        key, _equals, value = option.partition("=")
        details[key.strip()] = value.strip()
    return format.with_details(**details) if details else format


def _valid(examples: Iterator[Example], tally: Tally) -> Iterator[Example]:
    """Examples without lone surrogates; the others are skipped with their reason."""
    for example in examples:
        parts = [
            example.text,
            example.text_pair or "",
            *(example.labels or ()),
            *(s.label for s in example.spans or ()),
        ]
        reason = next(filter(None, map(invalid_text, parts)), None)
        if reason is None:
            yield example
        else:
            tally.skip(example.source.line if example.source else 0, reason)


def _other_task(path: Path, found: Format, task: str) -> Refusal:
    return Refusal(
        _("the file is for {found}, not {task}: {evidence}", found=found.task, task=task, evidence=found.evidence),
        where=str(path),
        next_step=_("Leave out --task, or name the format with --format"),
        code="FT199",
    )


def _nothing_read(opened: Stream) -> Refusal:
    first = opened.skipped[0] if opened.skipped else None
    where = whereabouts(first.source) if first else str(opened.path)
    found = (
        _("no row could be read as {format}; the first: {reason}", format=opened.format.name, reason=first.reason)
        if first
        else _("the file holds no rows")
    )
    step = _("It was taken for: {evidence}. Overrule with --format", evidence=opened.format.evidence)
    return Refusal(found, where=where, next_step=step, code="FT192")


def _labels(examples: list[Example], format: Format) -> tuple[str, ...]:
    if format.task == "ner":
        return tuple(sorted({span.label for example in examples for span in example.spans or ()}))
    found = {label for example in examples for label in example.labels or ()}
    classes = [name for name in format.details.get("classes", ()) if name in found]
    rest = found - set(classes)
    if rest and all(label.lstrip("+-").isdecimal() and len(label) < 15 for label in rest):
        return (*classes, *sorted(rest, key=int))
    return (*classes, *sorted(rest))


__all__ = ["Stream", "read", "stream", "text_format"]
