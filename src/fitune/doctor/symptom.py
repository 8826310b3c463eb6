"""Symptom: what a rule saw. The engine turns it into a Finding with the code, the page's words and a rank."""

from dataclasses import dataclass, field
from typing import Literal

from fitune.values import Fix

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Edit:
    """Replace characters ``[start, end)`` of a script by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Symptom:
    """What one rule saw in one log, machine, run or script."""

    evidence: tuple[str, ...]
    """Each starts with ``file:line`` where there is one."""
    confidence: float = 0.9
    line: int = 0
    """Where it was seen first; 0: not in a line."""
    lines: tuple[int, ...] = ()
    """All lines of the log it was seen in."""
    title: str = ""
    """Empty: the page's title."""
    why: str = ""
    """Empty: the page's "why"."""
    severity: Severity | None = None
    """None: the rule's own."""
    fixes: tuple[Fix, ...] = ()
    """Empty: the page's "how to fix"."""
    count: int = 1
    edits: tuple[Edit, ...] = field(default=())
    """Scripts: what ``--fix`` changes."""
