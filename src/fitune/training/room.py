"""A run and its disk: is there room before step 1, and what happens when there is none later."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

from fitune.checkpoint import NotSaved, disk_error, free_bytes, not_saved, too_little_room
from fitune.messages import _
from fitune.training.callbacks import Events, Interrupts
from fitune.values import Refusal

R = TypeVar("R")

_LOOK_SECONDS = 5.0
"""Between two looks whether there is room again."""


class Room:
    """On a full disk a run waits: it tells, goes on by itself when there is room, and ends when none comes."""

    def __init__(
        self,
        directory: Path,
        model_bytes: int,
        events: Events,
        interrupts: Interrupts,
        *,
        wait_seconds: float,
        deadline: float | None = None,
    ) -> None:
        self.directory, self.model_bytes = directory, model_bytes
        self._events, self._interrupts = events, interrupts
        self._wait_seconds, self._deadline = wait_seconds, deadline

    def insist(self, write: Callable[[], R], again: Callable[[], R] | None = None) -> R:
        """``write()`` until the disk takes it; from the second time on ``again()``, where it is given.

        Raises:
            NotSaved: the disk refuses for good, no room came in time, or the run was asked to stop meanwhile.
        """
        end: float | None = None
        while True:
            try:
                result = write()
            except Exception as error:
                refused = self._refused(error)
                if refused is None:
                    raise
                if end is None:
                    end = self._end()
                    self.tell(refused, waits=refused.full and self._interrupts.stop is None)
                if not refused.full or self._interrupts.stop is not None or time.monotonic() >= end:
                    raise refused from error
                self._pause(end)
                write = again or write
            else:
                if end is not None:
                    self._say("FT601", _("there is room on the disk again: going on"))
                return result

    def save_model(self, save: Callable[[], None]) -> None:
        """Write the model; where it cannot fit, nothing is begun, and the last bytes are left to the events."""

        def write() -> None:
            free = free_bytes(self.directory)
            if free < self.model_bytes:
                raise too_little_room(_("the model"), self.directory, self.model_bytes, free)
            save()

        self.insist(write)

    def tell(self, error: Refusal, *, waits: bool = False) -> None:
        """Say what the disk refused, and whether the run waits."""
        text = f"{error.where}: {error.found}. {error.next_step}"
        if waits:
            minutes = round(self._wait_seconds / 60)
            text += " " + _(
                "The run waits up to {minutes} minutes for room and goes on by itself; Ctrl-C or fitune stop ends it.",
                minutes=minutes,
            )
        self._say(error.code, text)

    def _say(self, code: str, text: str) -> None:
        self._events.emit("warning", self._events.trainer.state, code=code, text=text)

    def _refused(self, error: Exception) -> NotSaved | None:
        if isinstance(error, NotSaved):
            return error
        refused = disk_error(error)
        return None if refused is None else not_saved(_("the run"), self.directory, refused)

    def _end(self) -> float:
        wait = self._wait_seconds
        if self._deadline is not None:
            wait = min(wait, self._deadline - time.time())
        return time.monotonic() + wait

    def _pause(self, end: float) -> None:
        look = time.monotonic() + min(_LOOK_SECONDS, self._wait_seconds / 10)
        # In short naps: whoever asks the run to stop is heard soon.
        while time.monotonic() < min(look, end) and self._interrupts.stop is None:
            time.sleep(min(0.2, self._wait_seconds / 10))


def model_bytes(learner: Any, source: Path) -> int:
    """Bytes of the finished model: its weights, and as much text as lies beside those that it began with."""
    weights = sum(value.numel() * value.element_size() for value in learner.state_dict().values())
    return weights + sum(path.stat().st_size for path in _texts(source))


def _texts(folder: Path) -> Generator[Path]:
    for path in folder.glob("*"):
        if path.suffix in (".json", ".txt", ".model") and path.is_file():
            yield path


def refuse_without_room(directory: Path, needed_bytes: int) -> None:
    """Before step 1.

    Raises:
        Refusal: not even the finished model would fit (FT606).
    """
    free = free_bytes(directory) + bytes_in(directory / "model")
    if free < needed_bytes:
        raise Refusal(
            _(
                "the finished model needs {needed} MB, and this disk has {free} MB free",
                needed=-(-needed_bytes // 1_000_000),
                free=free // 1_000_000,
            ),
            where=str(directory),
            next_step=_("Make room there, or name a directory on another disk with --out."),
            code="FT606",
        )


def bytes_in(directory: Path) -> int:
    """Bytes of all files in a directory; 0 where there is none."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) if directory.is_dir() else 0
