"""CSV, TSV and their kin: one row a line, cells between separators, with or without a header, quoted or not.

Written by hand since no CSV reader can tell whether quotes mean anything in a file: a quoted cell that is not closed
where a cell ends makes the quotes of the whole file plain characters, and a cell that would swallow lines which are
rows themselves is not a cell. Text that holds the separator unquoted is put together again when only the text can.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any

from fitune.data.formats.base import Sample, TextFormat, not_expressible
from fitune.data.formats.beside import Beside, Place
from fitune.data.formats.layouts import (
    INDICATORS,
    Layout,
    has_known_name,
    header_and_layout,
    is_number,
    rows_above_header,
    undecided_label,
)
from fitune.data.formats.tables import RowMaker, fits_columns, flag_cells, label_cell, label_details
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction, Refusal

_SEPARATORS = ("\t", "_!_", "|||", ",", ";", "|", "\x01")
_LONGEST_CELL_LINES = 1000


@cache
def _cell_pattern(separator: str) -> re.Pattern[str]:
    return re.compile(rf'"([^"]*(?:""[^"]*)*)"(?={re.escape(separator)}|$)')


def split_quoted(line: str, separator: str) -> list[str] | None:
    """Cells of a line whose quoted cells are all closed; None when one is not."""
    if '"' not in line:
        return line.split(separator)
    pattern = _cell_pattern(separator)
    cells: list[str] = []
    position = 0
    while True:
        if line.startswith('"', position):
            match = pattern.match(line, position)
            if match is None:
                return None
            cells.append(match.group(1).replace('""', '"'))
            position = match.end()
        else:
            end = line.find(separator, position)
            end = len(line) if end < 0 else end
            cells.append(line[position:end])
            position = end
        if position >= len(line):
            return cells
        position += len(separator)


def records(
    lines: Iterable[str], separator: str, width: int, *, quoting: bool, tally: Tally | None = None
) -> Iterator[tuple[int, list[str], str]]:
    """(line number, cells, raw line) for each record; a quoted cell may hold line ends."""
    number = 0
    source = iter(lines)
    pending: list[str] = []
    while True:
        if pending:
            line = pending.pop()
        else:
            following = next(source, None)
            if following is None:
                return
            line = following
        number += 1
        if not quoting or '"' not in line:
            yield number, line.split(separator), line
            continue
        cells = split_quoted(line, separator)
        if cells is not None:
            yield number, cells, line
            continue
        joined = line
        taken: list[str] = []
        while cells is None and len(taken) < _LONGEST_CELL_LINES:
            extra = pending.pop() if pending else next(source, None)
            if extra is None:
                break
            taken.append(extra)
            if width > 1 and len(split_quoted(extra, separator) or ()) == width and extra.count('"') % 2 == 0:
                break
            joined += "\n" + extra
            # Only a line with a quote can close the cell.
            if '"' in extra:
                cells = split_quoted(joined, separator)
        if cells is not None and len(cells) == width:
            yield number, cells, joined
            number += len(taken)
            continue
        pending.extend(reversed(taken))
        if tally is not None:
            tally.note(_("quotes that are never closed, read as plain characters"))
        yield number, line.split(separator), line


def recognize(sample: Sample) -> Format | None:
    lines = [line for line in sample.lines if line and not line.isspace()]
    if not lines:
        return None
    best: tuple[float, Format, Refusal | None] | None = None
    for separator in _SEPARATORS:
        found = _recognize_with(separator, lines, sample)
        if found and (best is None or found[0] > best[0] + 0.02):
            best = found
    if best is not None and best[2] is not None and sample.labelled:
        raise best[2]
    return best[1] if best else None


def _recognize_with(separator: str, lines: list[str], sample: Sample) -> tuple[float, Format, Refusal | None] | None:
    """(share of lines that fit, format, why nothing can be learned from it), for one separator."""
    if sum(separator in line for line in lines) * 2 < len(lines):
        return _one_column(lines, sample) if separator == "," else None
    quoting = _quotes_mean_something(lines, separator)
    titles = rows_above_header([line.split(separator) for line in lines[:6]])
    lines = lines[titles:]
    first = (split_quoted(lines[0], separator) if quoting else None) or lines[0].split(separator)
    header_known = has_known_name(first)
    body = lines[1:] if header_known else lines
    rough = [(split_quoted(line, separator) if quoting else None) or line.split(separator) for line in body]
    widths = Counter(map(len, rough))
    width = len(first) if header_known else _width(widths, rough, separator)
    if width < 2:
        return None
    rows = [cells for _n, cells, _raw in islice(records(body, separator, width, quoting=quoting), 2000)]
    fitting = [cells for cells in rows if len(cells) == width]
    header, layout = header_and_layout(first, header_known, fitting, sample.columns, sample.path)
    if layout is None:
        return None
    usable = sum(len(cells) >= width for cells in rows) / max(1, len(rows))
    exact = len(fitting) / max(1, len(rows))
    if not header_known and not sample.forced and not sample.columns.any():
        if not (layout.labelled or layout.undecided) or usable < 0.9 or (exact < 0.5 and separator != "\t"):
            return None
    elif usable < 0.5 and not sample.forced and rows:
        return None
    details = _details(separator, width, quoting, header, layout, fitting, sample)
    if titles:
        details["titles"] = titles
    undecided = undecided_label(layout, header, sample.path) if layout.undecided else None
    found = Format(
        name="tsv" if separator == "\t" else "csv",
        task="classification" if layout.labelled else None,
        details=details,
        evidence=_(
            "cells separated by {separator}, {header}, {quoting}; {columns}{classes}",
            separator=repr(separator),
            header=_("with a header") if header is not None else _("no header"),
            quoting=_("quoted cells") if quoting else _("quotes are plain characters"),
            columns=layout.evidence,
            classes="; " + _("class names from the file beside it") if details.get("classes") else "",
        ),
    )
    return usable + 0.1 * header_known, found, undecided


def _details(
    separator: str,
    width: int,
    quoting: bool,
    header: list[str] | None,
    layout: Layout,
    rows: list[list[str]],
    sample: Sample,
) -> dict[str, Any]:
    details: dict[str, Any] = {"separator": separator, "width": width, "quoting": quoting, "header": header}
    details.update(layout.details(header))
    if layout.label is not None:
        cells = [row[layout.label] for row in rows]
        if header is not None and sample.lines and rows and rows[0] == header:
            cells = cells[1:]
        details.update(label_details(cells, sample.columns, None if header is not None else sample.path))
        filled = [cell.strip() for cell in cells if cell.strip()]
        details["label_numbers"] = bool(filled) and all(map(is_number, filled))
        details["label_longest"] = max(map(len, filled), default=0)
    return details


def _one_column(lines: list[str], sample: Sample) -> tuple[float, Format, Refusal | None] | None:
    """A header that names the text, and nothing else beside it."""
    if len(lines) < 2 or has_known_name([lines[0]]) is False or any("\t" in line for line in lines[:50]):
        return None
    quoting = _quotes_mean_something(lines, ",") and sum('"' in line for line in lines) > 0
    details = {"separator": ",", "width": 1, "quoting": quoting, "header": [lines[0]], "text": 0}
    evidence = _("one column with the header {header}", header=lines[0])
    return 0.6, Format(name="csv", details={**details, "text_pair": None, "label": None}, evidence=evidence), None


def _width(widths: Counter[int], rows: list[list[str]], separator: str) -> int:
    """Cells of a row in a file without header: what most have, or two where the text holds separators."""
    common, count = widths.most_common(1)[0]
    if count >= 0.9 * len(rows) or separator == "\t":
        return common if common > 1 else 0
    for index in (0, -1):
        values = Counter(row[index].strip() for row in rows if len(row) > 1)
        if sum(values.values()) >= 0.95 * len(rows) and _closed_set(values):
            return 2
    return 0


def _closed_set(values: Counter[str]) -> bool:
    """Few short values that come again and again."""
    return len(values) <= max(2, 0.1 * values.total()) and all(0 < len(value) <= 24 for value in values)


def _quotes_mean_something(lines: list[str], separator: str) -> bool:
    """False when a cell begins with a quote that is not closed where a cell ends (nor in a later line)."""
    opened = f'{separator}"'
    if not any(line.startswith('"') or opened in line for line in lines):
        # No cell begins with a quote: keep the chance for a later one in CSV, where quoting is the rule.
        return separator != "\t"
    width = Counter(len(line.split(separator)) for line in lines).most_common(1)[0][0]
    tally = Tally("")
    # The end of the sample may cut the last cell; what is open there says nothing.
    for _record in records(lines, separator, width, quoting=True, tally=tally):
        pass
    return not tally.notes


def parse(lines: Iterable[str], format: Format, tally: Tally) -> Iterator[Example]:
    details = format.details
    separator, width = str(details["separator"]), int(details["width"])
    text_at, pair_at, label_at = details["text"], details.get("text_pair"), details.get("label")
    flags_at: list[int] = details.get("label_columns", [])
    make = RowMaker(format, tally).example
    skip_header = details.get("header") is not None
    titles = int(details.get("titles", 0))
    for number, cells, line in records(lines, separator, width, quoting=bool(details["quoting"]), tally=tally):
        if titles and line and not line.isspace():
            # Once written again, the file begins with its header.
            titles = 0 if cells == details["header"] else titles - 1
            if titles or cells != details["header"]:
                tally.structure["title"] += 1
                continue
        if skip_header and (line and not line.isspace()):
            skip_header = False
            tally.structure["header"] += 1
            continue
        if len(cells) != width:
            if not line or line.isspace():
                tally.structure["blank"] += 1
                continue
            fixed = _mend(cells, line, format, tally)
            if fixed is None:
                tally.rows += 1
                tally.skip(number, _wrong_width(len(cells), width))
                continue
            cells = fixed
        pair = cells[pair_at] if pair_at is not None else None
        label = [cells[i] for i in flags_at] if flags_at else cells[label_at] if label_at is not None else None
        example = make(number, cells[text_at], pair, label)
        if example is not None:
            yield example


def _wrong_width(found: int, width: int) -> str:
    return _("the line has {found} cells, the file has {width}", found=found, width=width)


def _mend(cells: list[str], line: str, format: Format, tally: Tally) -> list[str] | None:
    """A row of the right width from one whose text holds separators, or whose label is not needed; else None."""
    details = format.details
    separator, width, text_at, label_at = details["separator"], details["width"], details["text"], details["label"]
    extra = len(cells) - width
    if extra < 0:
        if not tally.labelled and text_at < len(cells) and details.get("text_pair") is None:
            return cells + [""] * -extra
        return None
    if width == 1:
        return [line]
    flags: list[int] = details.get("label_columns", [])
    if (label_at is None and not flags) or details.get("text_pair") is not None:
        return None
    whole = [*cells[:text_at], separator.join(cells[text_at : text_at + extra + 1]), *cells[text_at + extra + 1 :]]
    label = whole[label_at].strip() if label_at is not None else ""
    if flags:
        fits = all(whole[i].strip().lower() in INDICATORS for i in flags)
    elif details.get("label_numbers"):
        fits = is_number(label)
    else:
        fits = 0 < len(label) <= int(details.get("label_longest") or 0) + 8
    if not fits:
        return None
    tally.note(_("texts that hold the separator without quotes, put together again"))
    return whole


def rows(lines: Iterable[str], format: Format) -> Iterator[tuple[Place, list[str]]]:
    details, tally = format.details, Tally("", labelled=False)
    width = int(details["width"])
    for number, cells, line in records(lines, str(details["separator"]), width, quoting=bool(details["quoting"])):
        whole = cells if len(cells) == width else _mend(cells, line, format, tally)
        if whole is not None:
            yield (number, 0), whole


def dump(
    items: Iterable[Example | Prediction], format: Format, beside: Beside[list[str]] | None = None
) -> Iterator[str]:
    """The columns that were read, and ``beside`` them the others. Predictions get a score column where there is a
    header; a column of that name is written over."""
    header: list[str] | None = format.details.get("header")
    source = iter(items)
    first = next(source, None)
    extra = _extra_columns(first, format)
    if header is not None:
        yield _row([*header, *(name for name in extra if name not in header)], None, format)
    elif extra[:1] == ["score"]:
        extra = []
    for item in chain([first] if first is not None else (), source):
        yield _item_row(item, format, extra, (beside.of(item) if beside else None) or [])


def _extra_columns(first: Example | Prediction | None, format: Format) -> list[str]:
    extra: list[str] = []
    if first is None:
        return extra
    # Columns of 0 and 1 have no place for the labels of a model that knows others.
    here = format.details.get("label") is not None or bool(format.details.get("label_columns"))
    if first.labels is not None and not (here and fits_columns(first, format.details)):
        extra.append("label")
    if isinstance(first, Prediction):
        if first.scores is not None:
            extra.append("score")
        if first.spans is not None:
            extra.append("entities")
    return extra


def _item_row(item: Example | Prediction, format: Format, extra: Sequence[str], row: list[str]) -> str:
    details = format.details
    cells = list(row) or [""] * int(details["width"])
    cells[details["text"]] = item.text
    if details.get("text_pair") is not None:
        cells[details["text_pair"]] = item.text_pair or ""
    if details.get("label") is not None:
        cells[details["label"]] = label_cell(item.labels, details)
    if details.get("label_columns") and "label" not in extra:
        for index, cell in zip(details["label_columns"], flag_cells(item, details, format.name), strict=True):
            cells[index] = cell
    header: list[str] = details.get("header") or []
    for name in extra:
        cell = _extra_cell(name, item, details)
        if name in header:
            cells[header.index(name)] = cell
        else:
            cells.append(cell)
    return _row(cells, item, format)


def _extra_cell(name: str, item: Example | Prediction, details: dict[str, Any]) -> str:
    if name == "label":
        return label_cell(item.labels, details)
    if not isinstance(item, Prediction):
        return ""
    if name == "score":
        return "|".join(f"{(item.scores or {}).get(label, 0.0):.6g}" for label in item.labels or ())
    return json.dumps(item.to_json().get("entities", []), ensure_ascii=False)


def _row(cells: Sequence[str], item: Example | Prediction | None, format: Format) -> str:
    """One line; in a file whose quotes are plain characters, what would need quoting is refused."""
    details = format.details
    separator, quoting = str(details["separator"]), bool(details["quoting"])
    written: list[str] = []
    for index, cell in enumerate(cells):
        special = separator in cell or "\n" in cell or "\r" in cell
        if quoting and (special or '"' in cell):
            cell = '"' + cell.replace('"', '""') + '"'
        elif special and item is not None:
            labelled = details.get("label") is not None or bool(details.get("label_columns"))
            alone = index == details["text"] and separator in cell and labelled
            if "\n" in cell or "\r" in cell or not alone or details.get("text_pair") is not None:
                raise not_expressible(item, format.name, _("a line break or the separator in an unquoted cell"))
        written.append(cell)
    return separator.join(written)


DELIMITED = TextFormat("csv", recognize, parse, dump, rows)
