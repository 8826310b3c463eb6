"""``events.jsonl`` as its one writer sees it: whole lines, in order, and none lost while the disk is full."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from pathlib import Path

from fitune.values import Event

RESERVE = ".reserve"
"""A small file beside events.jsonl, given up on a full disk so that the run can still say so to those who watch."""

_RESERVE_BYTES = 1 << 16
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Journal:
    """Appends events to a file. What a full disk does not take is kept, and written before the next one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: io.FileIO | None = None
        self._unwritten: list[Event] = []

    @property
    def unwritten(self) -> list[Event]:
        """Events that the disk has no room for yet."""
        return list(self._unwritten)

    def append(self, event: Event) -> None:
        """Add one line, in a single write: readers see it whole, and at once.

        Raises:
            OSError: the disk refuses for another reason than being full.
        """
        self._unwritten.append(event)
        if not self._flush() and self._give_up_reserve():
            self._flush()

    def close(self) -> None:
        """Write what is left, as far as there is room; a later ``append`` opens the file again."""
        self._give_up_reserve()
        if self._unwritten:
            self._flush()
            self._give_up_reserve()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _flush(self) -> bool:
        try:
            if self._file is None:
                _cut_torn_line(self.path)
                self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  (kept open for the run)
                self._make_reserve()
            while self._unwritten:
                _write_whole(self._file, self._unwritten[0].model_dump_json().encode() + b"\n")
                self._unwritten.pop(0)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            return False
        return True

    def _make_reserve(self) -> None:
        # Random bytes: a file system that compresses would set nothing aside for zeros.
        with contextlib.suppress(OSError):
            self.path.with_name(RESERVE).write_bytes(os.urandom(_RESERVE_BYTES))

    def _give_up_reserve(self) -> bool:
        try:
            self.path.with_name(RESERVE).unlink()
        except OSError:
            return False
        return True


def _write_whole(file: io.FileIO, line: bytes) -> None:
    """All of ``line`` or nothing: the part that a full disk took is cut off again."""
    size = os.fstat(file.fileno()).st_size
    try:
        if file.write(line) == len(line):
            return
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)
    except OSError:
        os.ftruncate(file.fileno(), size)
        raise


def _cut_torn_line(path: Path) -> None:
    """Cut off what a crashed writer left behind the last newline: half an event is none."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 4096)
            file.seek(start)
            cut = file.read(end - start).rfind(b"\n")
            if cut >= 0:
                file.truncate(start + cut + 1)
                return
            end = start
        file.truncate(0)
