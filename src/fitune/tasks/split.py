"""A split as a task sees it: the user's rows, their windows, and the columns that the model is fed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fitune.data import Windows
from fitune.hf import Columns
from fitune.values import Example


@dataclass(frozen=True, eq=False)
class SplitData:
    """Rows, windows and columns of one split; the three count examples and windows alike."""

    examples: Sequence[Example]
    windows: Windows
    columns: Columns

    def __len__(self) -> int:
        """Examples."""
        return len(self.examples)
