"""What a disk refuses, in words: full, no inodes, not writable. Also for errors of libraries that hide the cause."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path

from fitune.messages import _, system_reason
from fitune.values import Refusal

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


class NotSaved(Refusal):
    """Nothing was saved, and nothing that was there is touched. ``full``: there will be room once files are removed."""

    exit_code = 74

    def __init__(self, found: str, *, where: str, next_step: str, code: str, full: bool) -> None:
        self.full = full
        super().__init__(found, where=where, next_step=next_step, code=code)


def disk_error(error: BaseException) -> OSError | None:
    """``error`` as the disk's own, when a disk is what refused; libraries in Rust say it in their text alone."""
    if isinstance(error, OSError):
        return error if error.errno in (*_FULL, *_CLOSED, errno.EIO) else None
    if match := re.search(r"\(os error (\d+)\)", str(error)):
        # The system's own number, which on Windows is another one than errno.
        number = int(match[1])
        own = OSError(0, "", None, number) if os.name == "nt" else OSError(number, os.strerror(number))
        return disk_error(own)
    return None


def not_saved(what: str, directory: Path, error: OSError) -> NotSaved:
    """The refusal for ``what`` (such as "the checkpoint") that could not be written in ``directory``.

    FT601: disk or inodes full; FT605: not writable; FT607: any other failure of the disk.
    """
    where = str(directory)
    if error.errno in _FULL:
        if inodes_left(directory) == 0:
            found = _("{what} was not saved: the disk has no room for another file (inodes are used up)", what=what)
            step = _("Remove files from this disk; what was saved before is intact.")
        else:
            free = free_bytes(directory)
            found = _("{what} was not saved: the disk is full ({free} MB free)", what=what, free=free // 1_000_000)
            step = _("Make room on this disk; what was saved before is intact.")
        return NotSaved(found, where=where, next_step=step, code="FT601", full=True)
    if error.errno in _CLOSED:
        found = _(
            "{what} was not saved: the directory is not writable ({error})", what=what, error=system_reason(error)
        )
        step = _("Give a directory that you may write to with --out.")
        return NotSaved(found, where=where, next_step=step, code="FT605", full=False)
    found = _("{what} was not saved: {error}", what=what, error=system_reason(error))
    step = _("Check the disk; what was saved before is intact.")
    return NotSaved(found, where=where, next_step=step, code="FT607", full=False)


def too_little_room(what: str, directory: Path, needed_bytes: int, free: int) -> NotSaved:
    """The refusal to begin to write what cannot fit."""
    needed = -(-needed_bytes // 1_000_000)
    return NotSaved(
        _("{what} was not saved: {needed} MB needed, {free} MB free", what=what, needed=needed, free=free // 1_000_000),
        where=str(directory),
        next_step=_("Make room on this disk; what was saved before is intact."),
        code="FT601",
        full=True,
    )


def inodes_left(directory: Path) -> int | None:
    """Free inodes; None where the file system does not count them."""
    if not hasattr(os, "statvfs") or not directory.exists():
        return None
    stats = os.statvfs(directory)
    return stats.f_favail if stats.f_files else None


def free_bytes(directory: Path) -> int:
    """What this user may still write there."""
    while not directory.exists():
        directory = directory.parent
    return shutil.disk_usage(directory).free
