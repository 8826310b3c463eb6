"""What stands beside text and label in the file that was read: found again for each row that is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from fitune.values import Example, Prediction, Source

Row = TypeVar("Row")
Place = tuple[int, int]
"""(line, number of the row where several share a line, else 0): ascends through a file."""
_AT_END: Place = (2**62, 0)


def place_of(source: Source) -> Place:
    return source.line, source.row or 0


class Beside(Generic[Row]):
    """The rows of a file that is read a second time, in step with the items that are written.

    A row is found by the place that its item came from, never by its text: a repaired text is still that row's. Items
    come in the order of the file; several in turn may come from one row. Memory: one row.

    Args:
        file: as the items' sources name it.
        rows: (place, row), in the order of the file.
    """

    def __init__(self, file: str, rows: Iterable[tuple[Place, Row]]) -> None:
        self._file = file
        self._rows = iter(rows)
        self._place: Place = (0, 0)
        self._row: Row | None = None

    def of(self, item: Example | Prediction) -> Row | None:
        """The row that ``item`` came from; None when it came from elsewhere."""
        source = item.source
        if source is None or source.file != self._file:
            return None
        wanted = place_of(source)
        while self._place < wanted:
            self._place, self._row = next(self._rows, (_AT_END, None))
        return self._row if self._place == wanted else None
