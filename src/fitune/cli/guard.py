"""What a person sees when a command does not end well."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fitune import __version__
from fitune.messages import _
from fitune.values import Refusal

INTERRUPTED = 130


@contextmanager
def guarded(arguments: Sequence[str]) -> Generator[None, None, None]:
    """Refusal: one clear message, exit 2. Ctrl-C: 130. A closed pipe: quiet. A bug: a log file and one line, exit 1."""
    try:
        yield
    except Refusal as refusal:
        sys.stderr.write(refusal_text(refusal) + "\n")
        raise SystemExit(refusal.exit_code) from None
    except KeyboardInterrupt:
        sys.stderr.write("\n" + _("Stopped.") + "\n")
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader (head, less) has gone; Python must not complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except Exception as error:  # noqa: BLE001  (the last wall before the user)
        path = write_bug_log(arguments, error)
        first = str(error).strip().splitlines()
        summary = f"{type(error).__name__}: {first[0]}" if first else type(error).__name__
        sys.stderr.write(
            _("This is a mistake in fitune, not in what you typed: {summary}", summary=summary)
            + "\n"
            + _("All details are in {path}", path=path)
            + "\n"
        )
        raise SystemExit(1) from None


def refusal_text(refusal: Refusal) -> str:
    """Where, what, what next: at most three short parts."""
    head = f"{refusal.where}: {refusal.found}" if refusal.where else refusal.found
    if refusal.code:
        head = f"[{refusal.code}] {head}"
    return f"{head}\n  -> {refusal.next_step}" if refusal.next_step else head


def write_bug_log(arguments: Sequence[str], error: BaseException) -> Path:
    """The traceback and the versions, in a file of the user's own."""
    folder = Path(tempfile.gettempdir())
    descriptor, name = tempfile.mkstemp(prefix=time.strftime("fitune-%Y%m%d-%H%M%S-"), suffix=".log", dir=folder)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f"fitune {__version__}, Python {sys.version}, {sys.platform}\n")
        file.write(f"arguments: {list(arguments)!r}\n\n")
        file.write("".join(traceback.format_exception(error)))
    return Path(name)
