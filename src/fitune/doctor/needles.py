"""Words without which a pattern cannot match: looking for them first makes a long log quick to read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

try:
    from re import _constants as constants  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as constants
    import sre_parse as parser

_SHORTEST = 3


@cache
def needles(pattern: str) -> frozenset[str] | None:
    """Lower-case texts of which any match holds at least one; None: nothing is known of the pattern."""
    return _of(parser.parse(pattern, re.IGNORECASE | re.MULTILINE))  # type: ignore[no-any-return]


def may_match(pattern: str, lower_text: str) -> bool:
    """Whether the pattern can match in a text, given in lower case."""
    wanted = needles(pattern)
    return wanted is None or any(word in lower_text for word in wanted)


def _of(items: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    found: list[frozenset[str]] = []
    run = ""
    for operation, value in items:
        if operation is constants.LITERAL:
            run += chr(value)
            continue
        if operation in {constants.AT, constants.ASSERT, constants.ASSERT_NOT}:
            continue
        found.append(frozenset({run.lower()}))
        run = ""
        inner: frozenset[str] | None = None
        if operation is constants.SUBPATTERN:
            inner = _of(value[3])
        elif operation is constants.BRANCH:
            branches = [_of(branch) for branch in value[1]]
            known = [branch for branch in branches if branch is not None]
            inner = frozenset[str]().union(*known) if len(known) == len(branches) else None
        elif operation in {constants.MAX_REPEAT, constants.MIN_REPEAT} and value[0] >= 1:
            inner = _of(value[2])
        if inner is not None:
            found.append(inner)
    found.append(frozenset({run.lower()}))
    usable = [words for words in found if min(map(len, words)) >= _SHORTEST]
    return max(usable, key=lambda words: min(map(len, words)), default=None)
