"""What ``check`` counts: values, JSON both ways, for the report."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fitune.data.rows import Task
from fitune.values import Finding
from fitune.values.base import Value


class Lengths(Value):
    """How long the texts are (pairs: both texts together)."""

    mean: float
    median: int
    p90: int
    p99: int
    longest: int
    edges: tuple[int, ...]
    """Bin k holds lengths in [edges[k], edges[k + 1]); the last bin has no upper end."""
    counts: tuple[int, ...]

    @classmethod
    def of(cls, lengths: "Sequence[int] | np.ndarray[Any, Any]") -> "Lengths | None":
        """None when there are no texts."""
        values = np.sort(np.asarray(lengths, np.int64))
        if not len(values):
            return None
        edges = [0, 1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
        edges = [e for e in edges if e <= values[-1]] or [0]
        bins = np.searchsorted(values, np.array([*edges, int(values[-1]) + 1]))

        def at(share: float) -> int:
            return int(values[min(len(values) - 1, int(share * len(values)))])

        return cls(
            mean=round(float(values.mean()), 2),
            median=at(0.5),
            p90=at(0.9),
            p99=at(0.99),
            longest=int(values[-1]),
            edges=tuple(edges),
            counts=tuple(np.diff(bins).tolist()),
        )


class TokenStatistics(Value):
    """Texts as the model sees them."""

    tokens: int
    """Special tokens not included."""
    unknown_tokens: int
    characters: int
    unknown_characters: int
    """Inside an unknown token."""
    dropped_characters: dict[str, int]
    """By reason: whitespace, control, mark, other."""
    most_unknown: dict[str, int]
    """What stands in unknown tokens most often -> how often."""
    entities: int
    entities_with_unknown: dict[str, int]
    """Label -> entities that hold an unknown token."""
    unknown_share_by_label: dict[str, float]
    """Label -> share of the tokens in its entities (for classes: in their texts) that is unknown."""
    inexact_entities: dict[str, int]
    """trimmed, cut, lost -> how many (see ``Expressed``)."""
    windows: int
    max_length: int
    long_texts: int
    """Texts of more than one window."""
    labelled_share_in_windows: float
    """Share of the labelled characters inside a window; 1.0."""
    lengths: Lengths | None
    """In tokens, special tokens not included."""


class SplitStatistics(Value):
    """One file."""

    file: str
    format: str
    encoding: str
    recognized: str
    """Why the file was taken for this format."""
    rows: int
    skipped: int
    characters: int
    labels: dict[str, int]
    """Class, or entity label -> how often."""
    entities: int
    labelled_rows: int
    different_texts: int
    duplicates: int
    """Rows whose text stands in an earlier row."""
    lengths: Lengths | None
    """In characters."""
    tokens: TokenStatistics | None = None
    """None: checked without a model."""


class Check(Value):
    """What is in the files, and what is wrong with them."""

    task: Task | None
    multi_label: bool
    splits: dict[str, SplitStatistics]
    findings: tuple[Finding, ...]

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> "Check":
        return cls.model_validate(plain)

    def found(self, code: str) -> tuple[Finding, ...]:
        """The findings of one kind, one a split."""
        return tuple(f for f in self.findings if f.code == code)
