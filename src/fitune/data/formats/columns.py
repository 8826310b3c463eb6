"""CoNLL-like columns: one character or word a line, its tag in one of the columns, a blank line after each sentence.

Any separator, two to four columns, ``-DOCSTART-`` lines; the tag scheme is recognised and every tag is checked.
The Weibo corpus writes each character's position in its word behind it (``科0 技1``); that digit is taken off, and
written as 0. Words that are no Chinese are joined with a space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from fitune.data.formats.base import Sample, TextFormat, not_expressible, one_line
from fitune.data.formats.beside import Beside, Place
from fitune.data.formats.joining import cut_characters, has_han, join_tokens, own_tokens, recognize_joiner
from fitune.data.rows import Format, Tally
from fitune.data.schemes import Scheme, decode_tags, detect_scheme, flatten, parse_tag, spans_to_tags
from fitune.messages import _
from fitune.values import Example, Prediction, Source, Span

_SEPARATORS = ("\t", " ", ",", ";", "|", "\u3000")
_BLANKS = "blanks"
"""Any run of spaces and tabs."""
_DOCSTART = "-DOCSTART-"
_LONG_TOKEN = 12
"""Characters; Chinese words are seldom longer."""


def recognize(sample: Sample) -> Format | None:
    lines = [line for line in sample.lines if line and not line.isspace() and not line.startswith(_DOCSTART)]
    if len(lines) < (1 if sample.forced else 2):
        return None
    layout = _layout(lines)
    if layout is None:
        return None
    separator, columns, tag_column = layout
    rows = [parts for line in lines if len(parts := split_line(line, separator, columns)) == columns]
    tokens = [parts[0] for parts in rows]
    sentences = _sentences(sample.lines, separator, columns, tag_column)
    detected = detect_scheme(sentences)
    scheme, mark = (detected.scheme, detected.separator) if detected else ("BIO", "-")
    details: dict[str, Any] = {"separator": separator, "columns": columns, "tag_column": tag_column}
    details.update(scheme=scheme, mark=mark, positions=_has_positions(tokens), joiner=recognize_joiner(tokens))
    invalid = detected.invalid if detected else 0
    return Format(
        name="columns",
        task="ner",
        details=details,
        evidence=_(
            "{columns} columns separated by {separator}, column {tag_column} holds {scheme} tags"
            " ({invalid} invalid transitions in the first {count} lines){positions}",
            columns=columns,
            separator=_("blanks") if separator == _BLANKS else repr(separator),
            tag_column=tag_column + 1,
            scheme=scheme,
            invalid=invalid,
            count=len(lines),
            positions=_("; a position digit behind each character") if details["positions"] else "",
        ),
    )


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    reader = _SentenceReader(format, tally)
    for start, block, broken in _blocks(lines, format, tally):
        yield from reader.sentence(block, start, broken)


def rows(lines: Iterable[str], format: Format) -> Iterator[tuple[Place, list[list[str]]]]:
    """The columns of each sentence."""
    return (((start, 0), block) for start, block, _broken in _blocks(lines, format, Tally("")))


def _blocks(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[tuple[int, list[list[str]], str]]:
    """(first line, columns of each line, what is wrong with one of them or "") for each sentence."""
    separator, columns = str(format.details["separator"]), int(format.details["columns"])
    block: list[list[str]] = []
    start = number = 0
    broken = ""
    simple = separator != _BLANKS
    for number, line in enumerate(lines, 1):
        parts = line.rsplit(separator, columns - 1) if simple else split_line(line, separator, columns)
        if len(parts) != columns or not parts[-1]:
            if not line or line.isspace():
                tally.structure["blank"] += 1
                if start:
                    yield start, block, broken
                    block, start, broken = [], 0, ""
                continue
            parts = split_line(line, separator, columns)
            if len(parts) != columns:
                broken = broken or _(
                    "line {line} has {found} columns, the file has {columns}: {text}",
                    line=number,
                    found=len(parts),
                    columns=columns,
                    text=repr(line[:40]),
                )
        if parts[0] == _DOCSTART:
            tally.structure["docstart"] += 1
            continue
        start = start or number
        block.append(parts)
    if start:
        yield start, block, broken


class _SentenceReader:
    """Turns the lines of one sentence into an example."""

    def __init__(self, format: Format, tally: Tally) -> None:
        details = format.details
        self.tally = tally
        self.tag_column = int(details["tag_column"])
        self.scheme: Scheme = details["scheme"]
        self.positions = bool(details.get("positions"))
        self.joiner = str(details.get("joiner", ""))

    def sentence(self, block: list[list[str]], start: int, broken: str) -> Iterator[Example]:
        tally = self.tally
        tally.rows += 1
        if broken:
            tally.skip(start, broken)
            return
        tokens = [parts[0] for parts in block]
        tags = [parts[self.tag_column] for parts in block]
        if self.positions:
            tokens = strip_positions(tokens)
        if "" in tokens:
            tally.note(_("tokens missing before their tag, read as a space"), tokens.count(""))
            tokens = [token or " " for token in tokens]
        try:
            spans, invalid = decode_tags(tags, self.scheme)
        except ValueError:
            # The block may begin with a comment, so the line is found rather than counted.
            wrong = next(tag for tag in tags if parse_tag(tag) is None)
            tally.skip(start, _("{tag} is no tag of the scheme {scheme}", tag=repr(wrong[:40]), scheme=self.scheme))
            return
        if invalid:
            tally.stray(start, tags, invalid, spans, self.scheme)
        text, spans = join_tokens(tokens, spans, self.joiner)
        if len(text) > len(tokens):
            self._note_long_tokens(tokens)
        yield Example(text, spans, source=Source(tally.file, start))

    def _note_long_tokens(self, tokens: list[str]) -> None:
        """Some tools export a whole Chinese sentence as one token, with tags that no longer fit."""
        long = sum(len(token) > _LONG_TOKEN and has_han(token) for token in tokens)
        if long:
            message = _("Chinese tokens longer than a word; if they come from an annotation tool, export JSON instead")
            self.tally.note(message, long)


def dump(
    items: Iterable[Example | Prediction], format: Format, beside: Beside[list[list[str]]] | None = None
) -> Iterator[str]:
    """The lines ``beside`` with other tags. Without them, or where an entity ends inside one of their tokens, one
    character a line, words where a space joins them; columns between token and tag are then written as ``_``."""
    details = format.details
    separator = "\t" if details["separator"] == _BLANKS else str(details["separator"])
    scheme: Scheme = details["scheme"]
    first = True
    for item in items:
        if not first:
            yield ""
        first = False
        cells, spans = _same_lines(item, details, beside) or _new_lines(item, details)
        tags = spans_to_tags(spans, len(cells), scheme, separator=str(details.get("mark", "-")))
        for parts, tag in zip(cells, tags, strict=True):
            parts[int(details["tag_column"])] = tag
            yield separator.join(parts)
    if not first:
        yield ""


def _same_lines(
    item: Example | Prediction, details: dict[str, Any], beside: Beside[list[list[str]]] | None
) -> tuple[list[list[str]], list[Span]] | None:
    """Copies of the lines that the item was read from, where its entities are made of whole tokens; else None."""
    block = beside.of(item) if beside else None
    if block is None:
        return None
    tokens = [parts[0] for parts in block]
    if details.get("positions"):
        tokens = strip_positions(tokens)
    spans = own_tokens(item.text, tokens, flatten(item.spans or ())[0], str(details.get("joiner", "")))
    return None if spans is None else ([list(parts) for parts in block], spans)


def _new_lines(item: Example | Prediction, details: dict[str, Any]) -> tuple[list[list[str]], list[Span]]:
    text = one_line(item, "columns")
    tokens, spans = cut_characters(text, flatten(item.spans or ())[0], str(details.get("joiner", "")))
    if _DOCSTART in tokens:
        raise not_expressible(item, "columns", _DOCSTART)
    if details.get("joiner") and any(not token or token.isspace() for token in tokens):
        raise not_expressible(item, "columns", _("a blank, which is also what separates its tokens"))
    if details["separator"] == _BLANKS and any(token.isspace() for token in tokens):
        raise not_expressible(item, "columns", _("a blank, which is also what separates its columns"))
    rest = ["_"] * (int(details["columns"]) - 1)
    return [[f"{token}0" if details.get("positions") else token, *rest] for token in tokens], spans


def split_line(line: str, separator: str, columns: int) -> list[str]:
    """The columns of a line; the token itself may be the separator or a space."""
    if separator == _BLANKS:
        return line.split()
    parts = line.rsplit(separator, columns - 1)
    if len(parts) == columns and parts[-1]:
        return parts
    trimmed = line.rstrip(" \t" + separator)
    return trimmed.rsplit(separator, columns - 1) if trimmed else parts


def strip_positions(tokens: list[str]) -> list[str]:
    """``科0 技1`` -> ``科 技``: each digit continues the count of the token before it, or begins again at 0."""
    bare: list[str] = []
    position = -1
    for token in tokens:
        following = str(position + 1)
        if len(token) > len(following) and token.endswith(following):
            position += 1
            bare.append(token[: -len(following)])
        elif len(token) > 1 and token.endswith("0"):
            position = 0
            bare.append(token[:-1])
        else:
            position = -1
            bare.append(token)
    return bare


def _layout(lines: list[str]) -> tuple[str, int, int] | None:
    """(separator, columns, tag column) under which nearly all lines end or carry a tag."""
    best: tuple[float, str, int, int] | None = None
    for separator in (*_SEPARATORS, _BLANKS):
        widths = Counter(len(line.split(separator)) if separator != _BLANKS else len(line.split()) for line in lines)
        for columns in (2, 3, 4):
            if widths[columns] * 2 < len(lines):
                continue
            rows = [p for line in lines if len(p := split_line(line, separator, columns)) == columns]
            if sum(parts[0] != parts[0].strip() and not parts[0].isspace() for parts in rows) * 2 > len(rows):
                # The separator is longer than this one.
                continue
            for tag_column in (columns - 1, *range(1, columns - 1)):
                values = Counter(parts[tag_column] for parts in rows)
                valid = sum(count for tag, count in values.items() if parse_tag(tag)) / len(lines)
                if valid >= 0.9 and (best is None or valid > best[0] + 0.005):
                    best = (valid, separator, columns, tag_column)
    return best[1:] if best else None


def _sentences(lines: list[str], separator: str, columns: int, tag_column: int) -> Iterator[list[str]]:
    """The tags of each sentence of the sample, those that are no tags left out."""
    tags: list[str] = []
    for line in [*lines, ""]:
        if not line or line.isspace():
            if tags:
                yield tags
            tags = []
        else:
            parts = split_line(line, separator, columns)
            if len(parts) == columns and parse_tag(parts[tag_column]) and parts[0] != _DOCSTART:
                tags.append(parts[tag_column])


def _has_positions(tokens: list[str]) -> bool:
    if not tokens or not all(len(token) > 1 for token in tokens[:200]):
        return False
    counted = sum(a != b for a, b in zip(tokens, strip_positions(tokens), strict=True))
    return counted >= 0.99 * len(tokens)


COLUMNS = TextFormat("columns", recognize, parse, dump, rows)
