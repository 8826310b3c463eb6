"""Which column of a table is the text, which the second text, which the label: by name, else by content.

Shared by all formats whose rows are cells: CSV and TSV, JSON records, Excel and Parquet.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fitune.data.formats.base import Columns
from fitune.data.rows import Format, Tally
from fitune.messages import _
from fitune.values import Example, Refusal, Source

TEXT_NAMES = (
    "text", "text_a", "texta", "text1", "sentence", "sentence1", "sentence_a", "content", "review", "comment", "query",
    "query1", "question", "question1", "premise", "title", "document", "doc", "body", "message", "utterance", "tweet",
    "input", "sms", "文本", "内容", "评论", "句子", "句子1", "正文", "标题", "文本1", "问题", "问题1", "短信",
)  # fmt: skip
PAIR_NAMES = (
    "text_b", "textb", "text2", "text_pair", "sentence2", "sentence_b", "query2", "question2", "hypothesis", "passage",
    "answer", "句子2", "文本2", "问题2",
)  # fmt: skip
LABEL_NAMES = (
    "label", "labels", "class", "classes", "category", "categories", "sentiment", "target", "y", "tag", "tags", "topic",
    "intent", "polarity", "emotion", "gold_label", "is_duplicate", "rating", "star", "标签", "类别", "情感", "分类",
    "情感倾向", "情感标签", "类型", "标注", "意图",
)  # fmt: skip
IGNORED_NAMES = ("id", "idx", "index", "guid", "qid", "uid", "no", "编号", "序号", "数据编号", "score", "scores")
_CLASS_FILES = ("class.txt", "classes.txt", "class_names.txt", "labels.txt", "label.txt", "label_names.txt")
_SEPARATORS = ("|", ";", ",", "、", "，", "；", "/", "#")


@dataclass(frozen=True)
class Layout:
    """Positions of the columns that matter."""

    text: int
    text_pair: int | None
    label: int | None
    evidence: str


def name_of(cell: object) -> str:
    return str(cell).strip().strip("\ufeff\"'").lower()


def has_known_name(cells: Sequence[object]) -> bool:
    """Do these cells look like a header by their words alone?"""
    names = [name_of(cell) for cell in cells]
    known = {*TEXT_NAMES, *PAIR_NAMES, *LABEL_NAMES}
    if len(set(names)) != len(names):
        return False
    hits = sum(name in known for name in names)
    return hits >= 2 or (hits == 1 and len(names) <= 2) or (hits == 1 and any(name in IGNORED_NAMES for name in names))


def choose_columns(
    header: Sequence[str] | None, rows: Sequence[Sequence[object]], columns: Columns, path: Path
) -> Layout | None:
    """Text, pair and label column of a table, or None when no column can be the text."""
    width = len(header) if header is not None else max((len(row) for row in rows), default=0)
    names = [name_of(cell) for cell in header] if header is not None else [""] * width
    text = _asked(columns.text, header, width, path, "--text-column")
    pair = _asked(columns.text_pair, header, width, path, "--text-pair-column")
    label = _asked(columns.label, header, width, path, "--label-column")
    profiles = [_Profile([row[i] for row in rows if i < len(row)]) for i in range(width)]
    taken = {i for i in (text, pair, label) if i is not None}
    if text is None:
        text = _by_name(names, TEXT_NAMES, taken) if header is not None else None
        if text is None:
            free = [i for i in range(width) if i not in taken and names[i] not in (*LABEL_NAMES, *IGNORED_NAMES)]
            text = max(free, key=lambda i: profiles[i].mean_length, default=None)
        if text is None:
            return None
        taken.add(text)
    if pair is None and header is not None:
        pair = _by_name(names, PAIR_NAMES, taken)
        if pair is not None:
            taken.add(pair)
    if label is None:
        label = _by_name(names, LABEL_NAMES, taken) if header is not None else None
        if label is None:
            free = [i for i in range(width) if i not in taken and names[i] not in (*IGNORED_NAMES, *PAIR_NAMES)]
            likely = [i for i in free if profiles[i].like_labels]
            label = min(likely, key=lambda i: (profiles[i].distinct, i), default=None)
        if label is not None:
            taken.add(label)
    if pair is None and header is None and label is not None:
        others = [i for i in range(width) if i not in taken and profiles[i].like_texts]
        if len(others) == 1 and profiles[text].like_texts:
            text, pair = sorted((text, others[0]))
    return Layout(text, pair, label, _describe(header, text, pair, label))


class _Profile:
    """What a column's cells look like."""

    def __init__(self, cells: list[object]) -> None:
        values = [text_of(cell) for cell in cells]
        filled = [value for value in values if value]
        self.count = len(filled)
        self.distinct = len(set(filled))
        self.mean_length = sum(map(len, filled)) / max(1, len(filled))
        numbers = sum(is_number(value) for value in filled)
        repeats = self.distinct <= max(2, 0.5 * self.count) or self.count < 8
        self.like_labels = bool(filled) and self.mean_length <= 24 and repeats
        self.like_texts = bool(filled) and self.mean_length >= 3 and numbers < 0.5 * self.count


def _by_name(names: Sequence[str], known: Sequence[str], taken: set[int]) -> int | None:
    for name in known:
        for index, own in enumerate(names):
            if own == name and index not in taken:
                return index
    return None


def _asked(name: str | None, header: Sequence[str] | None, width: int, path: Path, option: str) -> int | None:
    """The position of the column that the user named, or numbered from 1."""
    if name is None:
        return None
    if header is not None:
        for wanted in (name, name_of(name)):
            for index, own in enumerate(header):
                if wanted in (own, name_of(own)):
                    return index
    if name.isdecimal() and 1 <= int(name) <= width:
        return int(name) - 1
    known = ", ".join(header) if header is not None else "1 .. " + str(width)
    raise Refusal(
        _("there is no column {name}; the columns are: {known}", name=repr(name), known=known),
        where=f"{path}:1",
        next_step=_("Name one of them with {option}, or give its number, counted from 1", option=option),
        code="FT195",
    )


def _describe(header: Sequence[str] | None, text: int, pair: int | None, label: int | None) -> str:
    def column(index: int) -> str:
        return f'"{header[index]}"' if header is not None else str(index + 1)

    told = _("text: column {column}", column=column(text))
    if pair is not None:
        told += "; " + _("second text: column {column}", column=column(pair))
    return told + "; " + (_("label: column {column}", column=column(label)) if label is not None else _("no label"))


def is_number(value: str) -> bool:
    body = value[1:] if value[:1] in "+-" else value
    return body.replace(".", "", 1).isdecimal()


def text_of(cell: object) -> str:
    """A cell as text; empty for null, NaN and what is no plain value."""
    if isinstance(cell, str):
        return cell
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, int):
        return str(cell) if abs(cell) < 10**18 else ""
    return ""


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
        self.has_label = format.task == "classification"
        self._known: dict[str, tuple[str, ...]] = {}

    def example(self, line: int, text: str, pair: str | None, label: str | list[str] | None) -> Example | None:
        """The example, or None when the row was skipped."""
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
                if tally.skipped and tally.skipped[-1].source.line == line:
                    tally.skipped.pop()
        return Example(text, None, labels, pair, Source(self.file, line))

    def _labels(self, line: int, label: str | list[str] | None) -> tuple[str, ...] | None:
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
