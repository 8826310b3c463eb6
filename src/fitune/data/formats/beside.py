"""What stands beside text and label in the file that was read: found again for each row that is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Generic, TypeVar

from fitune.values import Example, Prediction

Row = TypeVar("Row")
_AT_END = 2**62


class Beside(Generic[Row]):
    """The rows of a file that is read a second time, in step with the items that are written.

    A row is found by the line that its item came from and, where several share a line (an array in one line), by the
    text. Items come in the order of the file; several in turn may come from one row. Memory: the rows of one line.

    Args:
        file: as the items' sources name it.
        rows: (line, text, row), in the order of the file.
    """

    def __init__(self, file: str, rows: Iterable[tuple[int, object, Row]]) -> None:
        self._file = file
        self._groups = groupby(rows, key=itemgetter(0))
        self._line = 0
        self._here: list[tuple[object, Row]] = []
        self._found = -1

    def of(self, item: Example | Prediction) -> Row | None:
        """The row that ``item`` came from; None when it came from elsewhere."""
        source = item.source
        if source is None or source.file != self._file:
            return None
        while self._line < source.line:
            self._line, group = next(self._groups, (_AT_END, iter(())))
            self._here, self._found = [(text, row) for _line, text, row in group], -1
        if self._line != source.line:
            return None
        if len(self._here) == 1:
            return self._here[0][1]
        for index in self._search():
            if self._here[index][0] == item.text:
                self._found = index
                return self._here[index][1]
        return None

    def _search(self) -> Iterator[int]:
        """From the row behind the last one that was found; then that one again, and those before it."""
        yield from range(self._found + 1, len(self._here))
        yield from range(self._found + 1)
