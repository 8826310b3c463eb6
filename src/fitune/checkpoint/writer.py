"""Saves in the background: the caller hands over a snapshot and goes on; one save at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from fitune.checkpoint.arrays import Array
from fitune.checkpoint.store import Saved, Store


class Writer:
    """Writes snapshots to a store in a thread of its own.

    Back-pressure: while a save is being written, ``busy`` is true, and ``submit`` waits for it. The arrays handed over
    must not change until the save is done: give copies, and reuse them when ``busy`` is false.
    """

    def __init__(self, store: Store, on_saved: Callable[[Saved], object] | None = None) -> None:
        self.store = store
        self._on_saved = on_saved
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """A save is being written."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def failed(self) -> bool:
        """What was submitted is not on the disk; ``wait`` raises why."""
        return not self.busy and self._error is not None

    def submit(
        self, step: int, arrays: Mapping[str, Array], state: Mapping[str, Any], *, score: float | None = None
    ) -> None:
        """Begin to save; waits for the save before.

        Raises:
            NotSaved: the save before this one failed.
        """
        self.wait()
        self._thread = threading.Thread(
            target=self._save, args=(step, arrays, state, score), name="checkpoint", daemon=False
        )
        self._thread.start()

    def wait(self) -> None:
        """Wait until what was submitted is on the disk.

        Raises:
            NotSaved: it is not.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check()

    def check(self) -> None:
        """Raise what went wrong in the background since the last call."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _save(self, step: int, arrays: Mapping[str, Array], state: Mapping[str, Any], score: float | None) -> None:
        try:
            saved = self.store.save(step, arrays, state, score=score)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that trains
            self._error = error
        else:
            if self._on_saved:
                self._on_saved(saved)
