"""What ``robustness.py`` kills with: a training in a child process, SIGKILL while it saves, and the same call again."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from fitune.training import AlreadyFinished


def forked(body: Any, watch: Any = None) -> int:
    """Run ``body`` in a child; returns its exit code (-9: killed by ``watch(child)``)."""
    child = os.fork()
    if not child:
        code = 1
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                code = body() or 0
        except AlreadyFinished:
            code = 0
        except Exception as error:  # noqa: BLE001 - told to the parent in a word
            Path(os.environ["ROBUSTNESS_NOTE"]).write_text(f"{type(error).__name__}: {str(error).splitlines()[0]}")
        finally:
            os._exit(code)
    if watch is not None:
        watch(child)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killer(folder: Path, pattern: str, seen: int, delay: float) -> Any:
    """Kills the child ``delay`` seconds after its save number ``seen`` has begun."""

    def watch(child: int) -> None:
        found: set[str] = set()
        while len(found) < seen:
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return
            found |= {p.name.rpartition(".writing-")[2] for p in folder.glob(pattern)}
            time.sleep(0.0005)
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    return watch


def kill_in_saves(
    begin: Any, again: Any, newest: Any, save_seconds: Any, pattern: str, root: Path, kills: int
) -> dict[str, Any]:
    """Kill in the second save at moments drawn over a save's time; then the same again. ``newest``: is it whole?"""
    draw, counts, notes = random.Random(0), {}, set()
    root.mkdir(parents=True, exist_ok=True)
    whole, note = root / "undisturbed", root / "note.txt"
    os.environ["ROBUSTNESS_NOTE"] = str(note)
    if forked(lambda: begin(whole)):
        raise RuntimeError(note.read_text())
    bits, seconds = digest(whole), save_seconds(whole)
    for number in range(kills):
        folder = root / f"kill{number}"
        note.unlink(missing_ok=True)
        code = forked(lambda folder=folder: begin(folder), killer(folder, pattern, 2, draw.random() * seconds))
        outcome = ["killed" if code == -signal.SIGKILL else "not killed"]
        outcome.append("newest loads" if newest(folder) else "newest is damaged")
        code = forked(lambda folder=folder: again(folder))
        if code:
            notes.add(note.read_text()[:120] if note.exists() else f"exit {code}")
        same = not code and digest(folder) == bits
        outcome.append("same bits" if same else "other bits" if not code else "resume fails")
        key = ", ".join(outcome)
        counts[key] = counts.get(key, 0) + 1
        shutil.rmtree(folder)
    return {"kills": kills, "save_seconds": round(seconds, 3), "outcomes": counts, "errors": sorted(notes)}


def digest(folder: Path) -> str:
    path = next(p for p in (folder / "final.bin", folder / "model" / "model.safetensors") if p.exists())
    return hashlib.sha256(path.read_bytes()).hexdigest()
