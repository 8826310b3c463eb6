"""Runs seen from outside: where they are, whether they still work, and how to start one that outlives its terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fitune.checkpoint import Lock
from fitune.messages import _
from fitune.runs import Run
from fitune.values import Refusal

LOCK = "lock"
ROOT = "runs"


def run_named(name: str) -> Run:
    """A run by its directory, or by its name under ``runs/``."""
    if not Path(name).is_dir() and (Path(ROOT) / name / "job.toml").is_file():
        return Run.open(Path(ROOT) / name)
    return Run.open(name)


def worker_of(run: Run) -> dict[str, Any] | None:
    """The process that works on the run now; None: nobody does."""
    return Lock(run.directory / LOCK).holder()


def refuse_if_at_work(directory: Path) -> None:
    """A second training there would only end with the same words half a minute later, or in a log nobody reads.

    Raises:
        Locked: a process works on the run in ``directory``.
    """
    Lock(directory / LOCK).refuse_if_held()


def when_of(text: str) -> float:
    """A deadline as seconds since the epoch: ``08:30`` (the next), ``2026-01-31T08:30``, ``+90m``, ``+8h``.

    Raises:
        Refusal: it is none of these, or has passed.
    """
    now = datetime.now()
    try:
        if text.startswith("+"):
            amount, unit = float(text[1:-1]), text[-1]
            when = now + timedelta(**{{"m": "minutes", "h": "hours", "d": "days"}[unit]: amount})
        elif len(text) <= 5:
            clock = datetime.strptime(text, "%H:%M")
            when = now.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
            when += timedelta(days=when <= now)
        else:
            when = datetime.fromisoformat(text)
    except (ValueError, KeyError, IndexError):
        raise Refusal(
            _("not a time: {text}", text=text),
            where="--deadline",
            next_step=_("Such as 08:30, 2026-01-31T08:30, +90m or +8h."),
        ) from None
    if when.timestamp() <= time.time():
        raise Refusal(
            _("this time has passed: {text}", text=text), where="--deadline", next_step=_("Give a later one.")
        )
    return when.timestamp()


def start_detached(directory: Path, log: Path, *, patience_seconds: float = 600.0) -> int:
    """Start this very command again without a terminal, in ``directory``; returns its process id when it trains.

    Raises:
        Refusal: it ended before its first step; with the last lines of its log.
    """
    words = [word for word in sys.argv[1:] if word != "--detach"]
    if not any(word == "--out" or word.startswith("--out=") for word in words):
        words += ["--out", str(directory)]
    log.parent.mkdir(parents=True, exist_ok=True)
    seen = len(Run(directory).events())
    with log.open("ab") as file:
        # A session of its own: neither the terminal's end nor its Ctrl-C reaches it.
        child = subprocess.Popen(
            [sys.executable, "-m", "fitune", *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    end = time.monotonic() + patience_seconds
    while time.monotonic() < end:
        code = child.poll()
        if code is not None and code != 0:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
            raise Refusal(_("the run ended at once: {lines}", lines="\n".join(lines)), where=str(log))
        if code == 0 or len(Run(directory).events()) > seen:
            break
        time.sleep(0.2)
    return child.pid
