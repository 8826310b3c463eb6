"""Which column of a table is the text, which the second text, which the label: by name, else by content.

Shared by all formats whose rows are cells: CSV and TSV, JSON records, Excel and Parquet. Where several columns could
hold the label, none is picked in silence: columns of 0 and 1 are one label each, anything else is asked back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fitune.data.formats.base import Columns
from fitune.messages import _
from fitune.values import Refusal

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
INDICATORS = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}
"""What a cell of a column may hold whose name is a label: does the row have it?"""
_LIST = re.compile(r"\s*[,，、]\s*")


@dataclass(frozen=True)
class Layout:
    """Positions of the columns that matter."""

    text: int
    text_pair: int | None
    label: int | None
    evidence: str
    indicators: tuple[int, ...] = ()
    """Columns of 0 and 1 whose names are the labels; ``label`` is None then."""
    undecided: tuple[int, ...] = ()
    """Columns that could all be the label; ``label`` is None then."""

    @property
    def labelled(self) -> bool:
        return self.label is not None or bool(self.indicators)

    def details(self, header: Sequence[str] | None) -> dict[str, Any]:
        """As ``Format.details`` for tables whose columns are numbered."""
        found: dict[str, Any] = {"text": self.text, "text_pair": self.text_pair, "label": self.label}
        if self.indicators:
            found["label_columns"] = list(self.indicators)
            found["label_names"] = [
                (header[i].strip() if header is not None else "") or str(i + 1) for i in self.indicators
            ]
        return found


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


def rows_above_header(rows: Sequence[Sequence[object]]) -> int:
    """How many rows of one filled cell (a title, as exports from Excel have it) stand above a row of known names."""
    for number, row in enumerate(rows[:6]):
        filled = [text for cell in row if (text := text_of(cell).strip())]
        if number and len(filled) > 1 and has_known_name(filled):
            return number
        if len(filled) > 1 or len(row) < 2:
            return 0
    return 0


def header_and_layout(
    first: list[str], known: bool, rows: Sequence[Sequence[object]], columns: Columns, path: Path
) -> tuple[list[str] | None, Layout | None]:
    """Is the first row a header? And the columns. ``rows`` begin with it, unless it is ``known`` to be one."""
    if known or _named_in(first, columns):
        return first, choose_columns(first, rows if known else rows[1:], columns, path)
    layout = choose_columns(None, rows, columns, path)
    label = next(iter(layout.indicators), layout.label) if layout is not None else None
    if label is None or len(rows) < 2 or len(first) <= label:
        return None, layout
    others = [text_of(row[label]).strip() for row in rows[1:] if label < len(row)]
    own = first[label].strip()
    words = all(re.fullmatch(r"[^\W\d][\w \-]{0,29}", cell.strip()) for cell in first)
    # A name above numbers needs no look at the other names.
    above_numbers = all(map(is_number, filter(None, others))) and not is_number(own) and all(map(_short, first))
    if own and own not in others and (above_numbers or (words and len(set(others)) < len(others))):
        return first, choose_columns(first, rows[1:], columns, path)
    return None, layout


def _short(cell: str) -> bool:
    return len(cell) <= 30


def _named_in(first: list[str], columns: Columns) -> bool:
    """Did the user name columns by words? Then the first line has to hold them."""
    names = {name_of(cell) for cell in first}
    asked = [name for name in (columns.text, columns.text_pair, columns.label) if name is not None]
    parts = [part for name in asked for part in ([name] if name_of(name) in names else _LIST.split(name))]
    return any(name_of(part) in names or not part.isdecimal() for part in parts)


def choose_columns(
    header: Sequence[str] | None, rows: Sequence[Sequence[object]], columns: Columns, path: Path
) -> Layout | None:
    """Text, pair and label column of a table, or None when no column can be the text."""
    width = len(header) if header is not None else max((len(row) for row in rows), default=0)
    names = [name_of(cell) for cell in header] if header is not None else [""] * width
    text = _asked(columns.text, header, width, path, "--text-column")
    pair = _asked(columns.text_pair, header, width, path, "--text-pair-column")
    indicators, undecided = _asked_indicators(columns.label, header, width, path), ()
    label = None if indicators else _asked(columns.label, header, width, path, "--label-column")
    profiles = [_Profile([row[i] for row in rows if i < len(row)]) for i in range(width)]
    taken = {i for i in (text, pair, label, *indicators) if i is not None}
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
    if label is None and not indicators:
        label = _by_name(names, LABEL_NAMES, taken) if header is not None else None
        if label is None:
            free = [i for i in range(width) if i not in taken and names[i] not in (*IGNORED_NAMES, *PAIR_NAMES)]
            label, indicators, undecided = _label_by_content(free, profiles, columns, header is not None)
            if undecided and header is None and not profiles[text].like_texts:
                label, undecided = undecided[0], ()
    taken.update(i for i in (label, *indicators) if i is not None)
    if pair is None and header is None and label is not None:
        others = [i for i in range(width) if i not in taken and profiles[i].like_texts]
        if len(others) == 1 and profiles[text].like_texts:
            text, pair = sorted((text, others[0]))
    if header is not None:
        _refuse_twins(header, text, columns.text, "--text-column", path)
        _refuse_twins(header, pair, columns.text_pair, "--text-pair-column", path)
        if columns.labelled:
            _refuse_twins(header, label, columns.label, "--label-column", path)
    evidence = _describe(header, text, pair, indicators or (() if label is None else (label,)))
    return Layout(text, pair, label, evidence, indicators, undecided)


def _refuse_twins(header: Sequence[str], used: int | None, asked: str | None, option: str, path: Path) -> None:
    """Two columns of one name: which is meant is asked back, unless the user gave a number or the one exact name."""
    if used is None or not header[used].strip():
        return
    if asked is None:
        twins = [i for i, cell in enumerate(header) if name_of(cell) == name_of(header[used])]
    else:
        twins = [i for i, cell in enumerate(header) if cell == asked]
    if len(twins) > 1:
        places = ", ".join(str(i + 1) for i in twins)
        raise Refusal(
            _("columns {places} all have the name {name}", places=places, name=repr(header[used].strip())),
            where=f"{path}:1",
            next_step=_(
                "Give the number of the one that is meant: {option} {number}", option=option, number=twins[0] + 1
            ),
            code="FT195",
        )


def _label_by_content(
    free: Sequence[int], profiles: Sequence[_Profile], columns: Columns, with_header: bool
) -> tuple[int | None, tuple[int, ...], tuple[int, ...]]:
    """(the label column, or columns of 0 and 1 that are a label each, or columns that could all be the label)."""
    likely = [i for i in free if profiles[i].like_labels]
    strong = [i for i in likely if profiles[i].like_classes]
    flags = tuple(i for i in likely if profiles[i].like_flags)
    if len(flags) > 1 and {*strong} <= {*flags}:
        if with_header and columns.multi_label is not False:
            return None, flags, ()
        return None, (), flags
    if len(strong) > 1 and with_header:
        return None, (), tuple(strong)
    return min(strong or likely, key=lambda i: (profiles[i].distinct, i), default=None), (), ()


def undecided_label(layout: Layout, header: Sequence[str] | None, path: Path) -> Refusal:
    """For a file that is to be learned from, when several columns could be the label."""
    names = [header[i].strip() if header is not None else str(i + 1) for i in layout.undecided]
    return Refusal(
        _("{count} columns could be the label: {names}", count=len(names), names=", ".join(names)),
        where=f"{path}:1",
        next_step=_(
            "Name it: --label-column {one}; or several columns of 0 and 1, each a label: --label-column {several}",
            one=names[0],
            several=",".join(names),
        ),
        code="FT195",
    )


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
        self.like_flags = bool(filled) and all(value.strip().lower() in INDICATORS for value in set(filled))
        # Cells that come again and differ; in a file of a few rows nothing does, and any short column may be the label.
        self.like_classes = self.mean_length <= 24 and 2 <= self.distinct <= max(2, 0.5 * self.count)
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
    found = _position(name, header, width)
    if found is not None:
        return found
    known = ", ".join(header) if header is not None else "1 .. " + str(width)
    raise Refusal(
        _("there is no column {name}; the columns are: {known}", name=repr(name), known=known),
        where=f"{path}:1",
        next_step=_("Name one of them with {option}, or give its number, counted from 1", option=option),
        code="FT195",
    )


def _position(name: str, header: Sequence[str] | None, width: int) -> int | None:
    if header is not None:
        for wanted in (name, name_of(name)):
            for index, own in enumerate(header):
                if wanted in (own, name_of(own)):
                    return index
    return int(name) - 1 if name.isdecimal() and 1 <= int(name) <= width else None


def _asked_indicators(name: str | None, header: Sequence[str] | None, width: int, path: Path) -> tuple[int, ...]:
    """``--label-column 正面,物流``: several columns, unless one has this very name."""
    if name is None or _position(name, header, width) is not None or len(parts := _LIST.split(name.strip())) < 2:
        return ()
    found = [_asked(part, header, width, path, "--label-column") for part in parts]
    return tuple(dict.fromkeys(i for i in found if i is not None))


def _describe(header: Sequence[str] | None, text: int, pair: int | None, labels: Sequence[int]) -> str:
    def column(index: int) -> str:
        return f'"{header[index]}"' if header is not None else str(index + 1)

    told = _("text: column {column}", column=column(text))
    if pair is not None:
        told += "; " + _("second text: column {column}", column=column(pair))
    if len(labels) > 1:
        return told + "; " + _("labels: columns {columns}, each 0 or 1", columns=", ".join(map(column, labels)))
    if labels:
        return told + "; " + _("label: column {column}", column=column(labels[0]))
    if header is not None and len(header) > 1:
        return told + "; " + _("no label among the columns {columns}", columns=", ".join(header))
    return told + "; " + _("no label")


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
