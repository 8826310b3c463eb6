"""Cells into examples and back: one label, several in a cell, or a column of 0 and 1 for each.

Shared by all formats whose rows are cells: CSV and TSV, JSON records, Excel and Parquet.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fitune.data.formats.base import Columns, not_expressible
from fitune.data.formats.layouts import INDICATORS, text_of
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Prediction

_CLASS_FILES = ("class.txt", "classes.txt", "class_names.txt", "labels.txt", "label.txt", "label_names.txt")
_SEPARATORS = ("|", ";", ",", "、", "，", "；", "/", "#")


def label_separator(cells: Sequence[str]) -> str | None:
    """What separates several labels in one cell: their parts come back in other cells, and are fewer than the cells."""
    filled = [cell for cell in cells if cell]
    kinds = set(filled)
    for separator in _SEPARATORS:
        several = sum(separator in cell for cell in filled)
        if several < max(2, 0.05 * len(filled)):
            continue
        pieces = Counter(piece.strip() for cell in filled for piece in cell.split(separator))
        recurring = sum(count > 1 for count in pieces.values())
        fewer = len(pieces) < len(kinds) or all(piece in kinds for piece in pieces)
        if "" not in pieces and recurring * 2 >= len(pieces) and fewer:
            return separator
    return None


def labels_in_list(cell: str) -> list[str] | None:
    """The labels of a cell that holds a list, as JSON or as Python prints it; None when it holds none."""
    if len(cell) > 100_000:
        return None
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    if not isinstance(value, list):
        return None
    return [text for item in value if (text := text_of(item).strip())]


def class_names(path: Path, labels: Sequence[str]) -> tuple[str, ...]:
    """Names from a class file beside the data, when every label is a number that has a line there."""
    if not labels or not all(label.isdecimal() and len(label) < 5 for label in labels):
        return ()
    for name in _CLASS_FILES:
        beside = path.parent / name
        if beside.is_file() and beside != path and beside.stat().st_size < 1 << 20:
            try:
                names = [line.strip() for line in beside.read_text("utf-8-sig").splitlines()]
            except UnicodeDecodeError:
                continue
            while names and not names[-1]:
                names.pop()
            if max(map(int, labels)) < len(names) and all(names) and len(set(names)) == len(names):
                return tuple(names)
    return ()


class RowMaker:
    """Makes examples from cells: the part that all tables share."""

    def __init__(self, format: Format, tally: Tally) -> None:
        details: dict[str, Any] = format.details
        self.tally = tally
        self.file = tally.file
        self.separator: str | None = details.get("label_separator")
        self.lists = bool(details.get("label_lists"))
        self.classes: list[str] = list(details.get("classes", ()))
        self.indicated: list[str] = list(details.get("label_names", ()))
        self.has_label = format.task == "classification"
        self._known: dict[str, tuple[str, ...]] = {}

    def example(self, line: int, text: str, pair: str | None, label: str | list[str] | None) -> Example | None:
        """The example, or None when the row was skipped. ``label``: a cell, a list, or the cells of 0 and 1."""
        tally = self.tally
        tally.rows += 1
        if not text or text.isspace():
            tally.skip(line, _("the text is empty"))
            return None
        if pair is not None and (not pair or pair.isspace()):
            tally.skip(line, _("the second text is empty"))
            return None
        labels = None
        if self.has_label:
            labels = self._labels(line, label)
            if labels is None:
                if tally.labelled:
                    return None
                # For prediction a missing label does not matter, nor does its reason.
                if tally.skipped and tally.skipped[-1].source == tally.at(line):
                    tally.skipped.pop()
        return Example(text, None, labels, pair, tally.at(line))

    def _labels(self, line: int, label: str | list[str] | None) -> tuple[str, ...] | None:
        if self.indicated:
            return self._flagged(line, label if isinstance(label, list) else [])
        if isinstance(label, list):
            return tuple(dict.fromkeys(label))
        if label is None:
            self.tally.skip(line, _("the label is empty"))
            return None
        known = self._known.get(label)
        if known is not None:
            return known
        bare = label.strip().lstrip("\ufeff")
        if not bare and not self.separator:
            self.tally.skip(line, _("the label is empty"))
            return None
        if self.lists and bare.startswith("["):
            listed = labels_in_list(bare)
            if listed is None:
                self.tally.skip(line, _("the label cell is no list: {cell}", cell=bare[:60]))
                return None
            return tuple(dict.fromkeys(listed))
        if self.classes:
            if not bare.isdecimal() or len(bare) > 4 or int(bare) >= len(self.classes):
                message = _("label {label} has no line in the class file", label=repr(bare[:40]))
                self.tally.skip(line, message)
                return None
            labels = (self.classes[int(bare)],)
        elif self.separator:
            labels = tuple(dict.fromkeys(p for piece in bare.split(self.separator) if (p := piece.strip())))
        else:
            labels = (bare,)
        if len(self._known) < 100_000:
            self._known[label] = labels
        return labels

    def _flagged(self, line: int, cells: list[str]) -> tuple[str, ...] | None:
        """The names of the columns that hold 1; an empty cell is a 0, unless all are empty."""
        values = [cell.strip().lower() for cell in cells]
        if not any(values):
            self.tally.skip(line, _("the label is empty"))
            return None
        for name, value in zip(self.indicated, values, strict=True):
            if value and value not in INDICATORS:
                message = _("column {column} holds {cell}, not 0 or 1", column=repr(name), cell=repr(value[:40]))
                self.tally.skip(line, message)
                return None
        named = zip(self.indicated, values, strict=True)
        return tuple(dict.fromkeys(name for name, value in named if INDICATORS.get(value)))


def fits_columns(item: Example | Prediction | None, details: dict[str, Any]) -> bool:
    """Are all labels columns of the file? A prediction may be by a model that knows others."""
    names = details.get("label_names")
    if not names or not isinstance(item, Prediction):
        return True
    return {*(item.labels or ()), *(item.scores or ())} <= set(names)


def flag_cells(item: Example | Prediction, details: dict[str, Any], format_name: str) -> list[str]:
    """The cells of 0 and 1, as ``RowMaker`` reads them back; empty when the labels are not known."""
    names: list[str] = details["label_names"]
    if item.labels is None:
        return [""] * len(names)
    unknown = next((label for label in item.labels if label not in names), None)
    if unknown is not None:
        raise not_expressible(
            item, format_name, _("the label {label}, for which it has no column", label=repr(unknown))
        )
    return [str(int(name in item.labels)) for name in names]


def label_cell(labels: tuple[str, ...] | None, details: dict[str, Any]) -> str:
    """Labels as one cell, as ``RowMaker`` reads them back."""
    if labels is None:
        return ""
    if details.get("label_lists"):
        return json.dumps(list(labels), ensure_ascii=False)
    if classes := details.get("classes"):
        # A class that the file does not list keeps its name: a number would be invented.
        return ",".join(str(classes.index(name)) if name in classes else name for name in labels)
    return str(details.get("label_separator") or ",").join(labels)


def label_details(cells: Sequence[str], columns: Columns, path: Path | None) -> dict[str, Any]:
    """How label cells are written: a list, several with a separator, numbers of a class file, or plain.

    ``path`` None: no class file is looked for (a file with a header has no need of one).
    """
    filled = [cell.strip() for cell in cells if cell.strip()]
    if columns.multi_label is not False:
        listed = sum(cell.startswith("[") and labels_in_list(cell) is not None for cell in filled)
        if listed and listed >= 0.9 * len(filled):
            return {"label_lists": True}
        separator = label_separator(filled)
        if separator is None and columns.multi_label:
            separator = max(_SEPARATORS, key=lambda s: sum(s in cell for cell in filled))
            separator = separator if any(separator in cell for cell in filled) else None
        if separator:
            return {"label_separator": separator}
    names = class_names(path, filled) if path is not None else ()
    return {"classes": list(names)} if names else {}
