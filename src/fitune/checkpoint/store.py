"""A run's checkpoints: saved whole or not at all, found by checking."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fitune.checkpoint.arrays import Array, chunks, read_arrays
from fitune.checkpoint.commit import Damaged, commit, read_manifest, remove, sweep, verify
from fitune.checkpoint.disk import free_bytes, too_little_room
from fitune.checkpoint.policy import Entry, Policy, superfluous
from fitune.messages import _

FORMAT = 1
_ARRAYS, _STATE = "arrays.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """One that was verified, file by file."""

    path: Path
    serial: int
    step: int
    """Optimizer steps done."""
    state: dict[str, Any]
    """The JSON that was saved."""
    arrays: dict[str, Array]
    """Mapped from the file; read when used."""


@dataclass(frozen=True)
class PassedOver:
    """A damaged checkpoint and what is wrong with it."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Saved:
    """What a save came to."""

    path: Path
    step: int
    nbytes: int
    measured_seconds: float


class Store:
    """The checkpoints in one directory. One process at a time (see ``Lock``)."""

    def __init__(self, directory: str | Path, policy: Policy | None = None) -> None:
        self.directory = Path(directory)
        self.policy = policy or Policy()
        self.passed_over: list[PassedOver] = []
        """Damaged ones that ``newest`` met."""

    def save(
        self, step: int, arrays: Mapping[str, Array], state: Mapping[str, Any], *, score: float | None = None
    ) -> Saved:
        """Save a checkpoint, then remove those that the policy does not keep.

        Raises:
            NotSaved: the disk is full or not writable; all earlier checkpoints are as they were.
        """
        begin = time.monotonic()
        entries, unlisted = self._entries()
        needed = sum(array.nbytes for array in arrays.values())
        if free_bytes(self.directory) < needed:
            self._make_room(entries)
            free = free_bytes(self.directory)
            if free < needed:
                raise too_little_room(_("the checkpoint"), self.directory, needed, free)
        serial = 1 + max((entry.serial for entry in entries), default=0) + len(unlisted)
        path = self.directory / f"{serial:06d}-step-{step}"
        while path.exists():
            serial += 1
            path = self.directory / f"{serial:06d}-step-{step}"
        text = json.dumps(state, ensure_ascii=False).encode()
        facts = {"format": FORMAT, "serial": serial, "step": step, "score": score, "saved_at": time.time()}
        written = commit(path, {_ARRAYS: chunks(arrays), _STATE: [text]}, facts)
        entries.append(Entry(path.name, serial, step, written, score))
        for entry in superfluous(entries, self.policy):
            remove(self.directory / entry.name)
        return Saved(path, step, written, time.monotonic() - begin)

    def newest(self) -> Checkpoint | None:
        """The newest complete checkpoint, every file of it read and compared with its hash; None: there is none.

        Damaged ones on the way are listed in ``passed_over``.
        """
        entries, self.passed_over = self._entries()
        for entry in sorted(entries, key=lambda e: e.serial, reverse=True):
            path = self.directory / entry.name
            try:
                return self.load(path)
            except Damaged as error:
                self.passed_over.append(PassedOver(path, str(error)))
        return None

    def load(self, path: Path) -> Checkpoint:
        """One checkpoint, verified.

        Raises:
            Damaged: a file is missing or not what was written.
        """
        facts = verify(path)
        if facts["format"] != FORMAT:
            raise Damaged(_("was written by another version of fitune (format {format})", format=facts["format"]))
        state = json.loads((path / _STATE).read_bytes())
        return Checkpoint(path, facts["serial"], facts["step"], state, read_arrays(path / _ARRAYS))

    def sweep(self) -> list[str]:
        """Remove what a crash left half written; returns the names. Only while holding the run's lock."""
        return sweep(self.directory)

    def _entries(self) -> tuple[list[Entry], list[PassedOver]]:
        """Checkpoints by their manifests, and directories that have no readable one."""
        entries: list[Entry] = []
        damaged: list[PassedOver] = []
        if self.directory.is_dir():
            for path in sorted(self.directory.iterdir()):
                if not path.is_dir() or path.name.startswith("."):
                    continue
                try:
                    manifest = read_manifest(path)
                except Damaged as error:
                    damaged.append(PassedOver(path, str(error)))
                    continue
                facts, size = manifest["facts"], sum(f["bytes"] for f in manifest["files"].values())
                entries.append(Entry(path.name, facts["serial"], facts["step"], size, facts["score"]))
        return entries, damaged

    def _make_room(self, entries: list[Entry]) -> None:
        """Keep one older checkpoint only: the newest that is complete."""
        if len(entries) < 2:
            return  # nothing to remove, and nothing to read through for it
        newest = self.newest()
        for entry in list(entries):
            if newest is not None and entry.name != newest.path.name:
                remove(self.directory / entry.name)
                entries.remove(entry)
