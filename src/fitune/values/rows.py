"""Rows: what the user's file says, and what the model says of it.

Offsets count Unicode code points of the user's own text, start included, end excluded, so that
``text[start:end]`` is always the mention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Source:
    """Where a row was read: printed as ``file:line``, so that terminals and editors jump to it.

    Where rows share a line, as ``file:line#row``.
    """

    file: str
    line: int
    """1-based line (for Excel and Parquet: row) at which the row starts."""
    row: int | None = None
    """1-based number of the row in the file, where the line holds other rows as well; else None."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.row is None else f"{self.file}:{self.line}#{self.row}"


@dataclass(frozen=True, slots=True)
class Span:
    """Characters ``[start, end)`` with a label; ``score`` in [0, 1] where a model found it."""

    start: int
    end: int
    label: str
    score: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"span [{self.start}, {self.end}) is empty or negative")

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"start": self.start, "end": self.end, "label": self.label}
        return plain if self.score is None else {**plain, "score": self.score}

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Span:
        return cls(plain["start"], plain["end"], plain["label"], plain.get("score"))


@dataclass(frozen=True, slots=True)
class Example:
    """One row of the user's file: text, and gold where there is any.

    ``spans`` is the gold of named-entity recognition, ``labels`` that of classification (several when multi-label);
    None means "not labelled", an empty tuple means "labelled: nothing there".
    """

    text: str
    spans: tuple[Span, ...] | None = None
    labels: tuple[str, ...] | None = None
    text_pair: str | None = None
    source: Source | None = None

    def __post_init__(self) -> None:
        for span in self.spans or ():
            if span.end > len(self.text):
                raise ValueError(
                    f"span [{span.start}, {span.end}) ends after the text, which has {len(self.text)} characters"
                )


@dataclass(frozen=True, slots=True)
class Prediction:
    """An Example's shape with scores: entities found, or the score of every class.

    ``labels`` holds the classes chosen (one, or several when multi-label), ``scores`` the probability of every class.
    """

    text: str
    spans: tuple[Span, ...] | None = None
    labels: tuple[str, ...] | None = None
    scores: dict[str, float] | None = None
    text_pair: str | None = None
    source: Source | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain dict; every span carries ``text``, always a slice of the source."""
        plain: dict[str, Any] = {"text": self.text}
        if self.text_pair is not None:
            plain["text_pair"] = self.text_pair
        if self.spans is not None:
            plain["entities"] = [{**s.to_json(), "text": self.text[s.start : s.end]} for s in self.spans]
        if self.labels is not None:
            plain["labels"] = list(self.labels)
        if self.scores is not None:
            plain["scores"] = dict(self.scores)
        return plain
