"""``main``: from the words typed to an exit code. Nothing heavy is imported here."""

from __future__ import annotations

import contextlib
import gettext
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from fitune.messages import _, language, set_language


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit.

    Exit codes: 0 done; 1 done, and what was found is an error (check), or a bug in fitune; 2 refused, nothing was
    changed; 130 stopped by Ctrl-C. ``train`` adds those of the run's "stopped" event.
    """
    _say_something_for_every_character()
    rest = _take_language(list(sys.argv[1:] if arguments is None else arguments))
    # The command-line library asks gettext for its own words ("Usage", "Options"), and does so when imported.
    if language() == "zh":
        os.environ["LANGUAGE"] = "zh"
        gettext.bindtextdomain("parser", str(Path(__file__).parent.parent / "messages"))
    gettext.textdomain("parser" if language() == "zh" else "messages")

    from fitune.cli.app import VERBS, build_app
    from fitune.cli.guard import guarded, let_go_of_full_disks
    from fitune.cli.usage import is_usage_error, unknown_verb, usage_refusal

    code: object = 0
    try:
        with guarded(rest):
            if rest and not rest[0].startswith("-") and rest[0] not in VERBS:
                raise unknown_verb(rest[0], VERBS)
            try:
                code = build_app(rest)(rest or ["--help"], prog_name="fitune", standalone_mode=False)
            except Exception as error:
                if not is_usage_error(error):
                    raise
                raise usage_refusal(error) from None
    finally:
        let_go_of_full_disks()
    raise SystemExit(code if isinstance(code, int) else 0)


def _take_language(arguments: list[str]) -> list[str]:
    """Set the language from ``--lang zh`` or ``--lang=zh``, anywhere before ``--``; the other words come back.

    It must be known before any help text is made, hence before the words are parsed.
    """
    rest: list[str] = []
    while arguments:
        word = arguments.pop(0)
        if word == "--":
            return [*rest, word, *arguments]
        name, equals, value = word.partition("=")
        if name != "--lang":
            rest.append(word)
            continue
        if not equals:
            value = arguments.pop(0) if arguments else ""
        set_language(_checked(value))
    return rest


def _checked(value: str) -> Literal["en", "zh"]:
    if value == "en" or value == "zh":
        return value
    from fitune.cli.guard import refusal_text
    from fitune.values import Refusal

    found = _("fitune speaks no such language") if value else _("the language is missing")
    refusal = Refusal(found, where=f"--lang {value}".rstrip(), next_step=_("Type --lang zh or --lang en."))
    sys.stderr.write(refusal_text(refusal) + "\n")
    raise SystemExit(refusal.exit_code)


def _say_something_for_every_character() -> None:
    """A console that cannot show a character (GBK, ASCII) shows ``?`` for it instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(ValueError, OSError):
                stream.reconfigure(errors="replace")
