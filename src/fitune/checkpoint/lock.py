"""One process at a time in a run's directory: a lock that names its holder and does not outlive it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from fitune.messages import _
from fitune.values import Refusal

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Locked(Refusal):
    """Another process works in this directory (FT603)."""


class Lock:
    """A lock file with process id, start time, host and command. Use as a context manager.

    A holder that is dead (no such process, or another one with its number, or the machine was started again) is
    recognised, and its lock taken over. A holder on another machine cannot be asked: it counts as alive.
    """

    _left_behind: ClassVar[list[dict[str, Any]]] = []
    """Locks of this process that a bad disk did not let it remove: given back all the same."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._mine: dict[str, Any] | None = None

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            Locked: naming who holds it.
        """
        mine = describe_process(os.getpid())
        with self._guard():
            self.refuse_if_held()
            beside = self.path.with_name(f"{self.path.name}.new")
            beside.write_text(json.dumps(mine), encoding="utf-8")
            beside.replace(self.path)
        self._mine = mine

    def refuse_if_held(self) -> None:
        """Look without taking: to refuse at once what ``acquire`` would refuse later.

        Raises:
            Locked: naming who holds it.
        """
        holder = self.holder()
        if holder is None:
            return
        raise Locked(
            _(
                "another process works on this run: {command} (process {pid} on {host}, since {since})",
                command=holder["command"] or "?",
                pid=holder["pid"],
                host=holder["host"],
                since=time.strftime("%Y-%m-%d %H:%M", time.localtime(holder["taken_at"])),
            ),
            where=str(self.path.parent),
            next_step=_("Watch it with fitune attach, or end it with fitune stop.")
            if holder["host"] == socket.gethostname()
            else _("If it is dead, remove {path}.", path=self.path),
            code="FT603",
        )

    def release(self) -> None:
        """Give the lock back, if this process holds it."""
        if self._mine is not None and self._mine["pid"] == os.getpid():
            try:
                with self._guard():
                    if self._read() == self._mine:
                        self.path.unlink(missing_ok=True)
            except OSError:
                # For other processes the lock that stays counts for nothing once this one has ended.
                Lock._left_behind.append(self._mine)
            self._mine = None

    def holder(self) -> dict[str, Any] | None:
        """Who holds the lock; None: nobody, or a process that is dead."""
        found = self._read()
        if found is None or found in Lock._left_behind:
            return None
        if found["host"] != socket.gethostname():
            return found
        now = describe_process(found["pid"])
        same = now["started"] is not None and now["started"] == found["started"] and now["boot"] == found["boot"]
        return found if same else None

    def _read(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        keys = {"pid", "host", "started", "boot", "command", "taken_at"}
        return found if isinstance(found, dict) and keys <= found.keys() else None

    @contextlib.contextmanager
    def _guard(self) -> Any:
        """Only one process at a time looks and takes: two must not both take over from a dead one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        guard = self.path.with_name(f"{self.path.name}.guard")
        with guard.open("a") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def describe_process(pid: int) -> dict[str, Any]:
    """Number, host, start and command of a process; ``started`` is None when there is no such process."""
    started: float | str | None = None
    boot, command = "", ""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            # Field 22, in clock ticks since boot; the name in field 2 may hold blanks and brackets.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                started = fields[19]
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    else:
        import psutil

        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            started, command = process.create_time(), " ".join(process.cmdline())
    return {
        "pid": pid,
        "host": socket.gethostname(),
        "started": started,
        "boot": boot,
        "command": command[:200],
        "taken_at": time.time(),
    }
