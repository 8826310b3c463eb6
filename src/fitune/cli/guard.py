"""What a person sees when a command does not end well."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fitune import __version__
from fitune.messages import _, system_reason
from fitune.values import Fix, Refusal

INTERRUPTED = 130
# Verbs that load a model: what they die of is mostly the machine, a disk or the hub.
_AT_WORK = {"train", "demo", "baseline", "predict", "serve", "export", "push"}
# Memory, environment, disk, models and hub; a finding about data or a script would put a bug of fitune on the user.
_FROM_OUTSIDE = ("FT3", "FT4", "FT6", "FT7")
_SURE = 0.8


@contextmanager
def guarded(arguments: Sequence[str]) -> Generator[None, None, None]:
    """Refusal: one clear message, exit 2. Ctrl-C: 130. A closed pipe: quiet.

    A path or a disk that refuses: exit 2. Anything else: exit 1 and a log file with the traceback; the doctor's
    finding where it knows the cause, else one line that names the bug.
    """
    try:
        yield
    except Refusal as refusal:
        _complain(refusal_text(refusal))
        raise SystemExit(refusal.exit_code) from None
    except KeyboardInterrupt:
        sys.stderr.write("\n" + _("Stopped.") + "\n")
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader (head, less) has gone; Python must not complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except Exception as error:  # noqa: BLE001  (the last wall before the user)
        if (refused := refused_by_disk(error)) is not None:
            _complain(refusal_text(refused))
            raise SystemExit(refused.exit_code) from None
        path = write_bug_log(arguments, error)
        if (known := known_cause(arguments, error, path)) is not None:
            _complain(known)
            raise SystemExit(1) from None
        first = str(error).strip().splitlines()
        summary = f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
        sys.stderr.write(
            _("This is a mistake in fitune, not in what you typed: {summary}", summary=summary)
            + "\n"
            + _("All details are in {path}", path=path)
            + "\n"
        )
        raise SystemExit(1) from None


@contextmanager
def unless_full() -> Generator[None]:
    """Output that goes to a file on a full disk (``--detach``, ``> log``) must not end what it tells about.

    The text stays in the stream's buffer and comes when there is room; a run's events hold it as well.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _complain(text: str) -> None:
    with unless_full():
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def let_go_of_full_disks() -> None:
    """At the end: a buffer that its file cannot take must not turn the exit code into 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def known_cause(arguments: Sequence[str], error: Exception, log: Path) -> str | None:
    """What the doctor finds in the traceback: code, title, why, and what to type. None: it is a bug of fitune."""
    if not arguments or arguments[0] not in _AT_WORK:
        return None
    try:
        # Only now: no command that goes well pays for it.
        from fitune.doctor import diagnose_log

        found = diagnose_log("".join(traceback.format_exception(error)), log.name).findings
    except Exception as second:  # noqa: BLE001  (the first error is the one to be told; this one goes beside it)
        with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\nThe doctor failed on it:\n" + "".join(traceback.format_exception(second)))
        return None
    for finding in found[:1]:
        if finding.severity == "error" and finding.confidence >= _SURE and finding.code.startswith(_FROM_OUTSIDE):
            fixes = ["  -> " + fix_text(fix) for fix in finding.fixes]
            more = _("More: fitune explain {code}. All details are in {path}", code=finding.code, path=log)
            why = "  " + " ".join(finding.why.split())
            return "\n".join([f"[{finding.code}] {finding.title}", why, *fixes, more])
    return None


def refused_by_disk(error: BaseException) -> Refusal | None:
    """The words for a path or a disk that refused; None for any other error.

    A file that is missing from an installation is no fault of the user's path, and stays a bug.
    """
    if not isinstance(error, OSError):
        return None
    where = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes, os.PathLike)) else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Refusal(
            _("the disk is full"),
            where=where,
            next_step=_("Make room on this disk, or name a folder on another one."),
            code="FT601",
        )
    if not where or _is_installed(Path(where)):
        return None
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Refusal(
            _("this path is closed to you ({error})", error=system_reason(error)),
            where=where,
            next_step=_("Name one that you may read and write, or look at its rights: ls -ld {path}", path=where),
            code="FT605",
        )
    if error.errno in (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG):
        return Refusal(
            _("this path cannot be used ({error})", error=system_reason(error)),
            where=where,
            next_step=_("Check the path, or name another one."),
        )
    return None


def _is_installed(path: Path) -> bool:
    """Whether ``path`` lies in Python or among its packages, where a user's files are not."""
    homes = (Path(__file__).resolve().parents[1], Path(os.__file__).parent, Path(sys.prefix) / "lib")
    return any(path.is_relative_to(home) for home in homes)


def refusal_text(refusal: Refusal) -> str:
    """Where, what, what next: at most three short parts."""
    head = f"{refusal.where}: {refusal.found}" if refusal.where else refusal.found
    if refusal.code:
        head = f"[{refusal.code}] {head}"
    return f"{head}\n  -> {refusal.next_step}" if refusal.next_step else head


def fix_text(fix: Fix) -> str:
    """A fix in one line; a command that the sentence does not say takes the place of its full stop."""
    if not fix.command or fix.command in fix.text:
        return fix.text
    return _("{advice}: {command}", advice=fix.text.rstrip(".。"), command=fix.command)


def write_bug_log(arguments: Sequence[str], error: BaseException) -> Path:
    """The traceback and the versions, in a file of the user's own."""
    folder = Path(tempfile.gettempdir())
    descriptor, name = tempfile.mkstemp(prefix=time.strftime("fitune-%Y%m%d-%H%M%S-"), suffix=".log", dir=folder)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"fitune {__version__}, Python {sys.version}, {sys.platform}\n")
        file.write(f"arguments: {list(arguments)!r}\n\n")
        file.write("".join(traceback.format_exception(error)))
    return Path(name)
