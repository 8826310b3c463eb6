"""What the parser refuses, said the way fitune says everything else: where, what, what to type next."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from fitune.messages import _
from fitune.values import Refusal


def is_usage_error(error: BaseException) -> bool:
    """The parser's error classes live in another place in each version; all can say themselves."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def usage_refusal(error: Any) -> Refusal:
    """The parser's error as a Refusal."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "fitune"
    next_step = _("All options: {command} --help", command=command)
    kind = type(error).__name__
    if kind == "NoSuchOption":
        found = _("there is no option {name}", name=error.option_name)
        if error.possibilities:
            found += _("; did you mean {near}?", near=error.possibilities[0])
        return Refusal(found, where=command, next_step=next_step)
    if kind == "BadOptionUsage":
        return Refusal(_("{option} needs a value", option=error.option_name), where=command, next_step=next_step)
    if kind == "MissingParameter" and error.param is not None:
        name = error.param.metavar or error.param.name.upper()
        return Refusal(_("{name} is missing", name=name), where=command, next_step=next_step)
    if kind == "BadParameter" and error.param is not None:
        option = next(iter(error.param.opts), error.param.name)
        return Refusal(_wrong_value(error), where=option, next_step=next_step)
    if extra := re.match(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", error.format_message()):
        return Refusal(_("one word too many: {words}", words=extra[1]), where=command, next_step=next_step)
    return Refusal(error.format_message(), where=command, next_step=next_step)


def _wrong_value(error: Any) -> str:
    """The parser knows English alone; what it says of numbers is said anew."""
    message = str(error.message)
    if match := re.search(r"greater than or equal to ([\d.]+)|>= ?([\d.]+)", message):
        return _("must be at least {least}", least=match[1] or match[2])
    if "integer" in message:
        return _("must be a whole number")
    if "float" in message or "number" in message:
        return _("must be a number")
    return message


def unknown_verb(word: str, verbs: Sequence[str]) -> Refusal:
    """``word`` stands where a verb should."""
    near = difflib.get_close_matches(word, verbs, n=1)
    found = _("there is no command {word}", word=word)
    if near:
        found += _("; did you mean {near}?", near=near[0])
    return Refusal(found, where="fitune", next_step=_("All commands: fitune --help"))
