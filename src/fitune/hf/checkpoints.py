"""Which of the stock Trainer's checkpoints can be gone on from: those left half written by a kill are named."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fitune.checkpoint import Unreadable, read_arrays
from fitune.messages import _

DAMAGED = "damaged-"
"""Put before the name of a checkpoint that is passed over; its files stay for whoever wants to look."""


def newest_whole(output_dir: str | None, tell: Callable[[str, str], Any]) -> str | bool:
    """The newest checkpoint in ``output_dir`` whose files are all there and readable.

    True, as the stock Trainer takes it, where there is no checkpoint at all; False (begin anew) where every one is
    damaged. Each damaged one is renamed and told (FT602): the stock Trainer would take it by its number, and fail.
    """
    folders = [p for p in Path(output_dir or ".").glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d+", p.name)]
    for folder in sorted(folders, key=lambda p: int(p.name.rpartition("-")[2]), reverse=True):
        reason = what_is_wrong(folder)
        if reason is None:
            return str(folder)
        folder.rename(folder.with_name(DAMAGED + folder.name))
        tell("FT602", _("checkpoint {name} is damaged and passed over: {reason}", name=folder.name, reason=reason))
    return not folders


def what_is_wrong(folder: Path) -> str | None:
    """The first file that is missing or half written; None: the checkpoint is whole."""
    try:
        # Written last: where it is whole, the rest has been written before.
        json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return _("{file} is missing or half written", file="trainer_state.json")
    for path in sorted(folder.iterdir()):
        if path.suffix == ".safetensors" and not _arrays_whole(path):
            return _("{file} is missing or half written", file=path.name)
        if path.suffix in (".pt", ".pth") and not _zip_whole(path):
            return _("{file} is missing or half written", file=path.name)
    return None


def _arrays_whole(path: Path) -> bool:
    try:
        read_arrays(path)
    except (Unreadable, OSError, ValueError, KeyError):
        return False
    return True


def _zip_whole(path: Path) -> bool:
    """torch.save writes a zip whose parts carry their checksums."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, OSError):
        return False
