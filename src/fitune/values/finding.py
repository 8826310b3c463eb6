"""Finding: something that was noticed, with its evidence. Fix: what to change. Refusal: an expected error."""

from typing import Literal

from pydantic import Field

from fitune.values.base import Value


class Fix(Value):
    """A change that mends a finding."""

    safety: Literal["safe", "unsafe", "display"]
    """safe: may be applied unasked; unsafe: changes what is learned or may lose something; display: only shown."""
    text: str
    """One line for a person."""
    settings: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    """Fields of Job or Fit to set."""
    command: str | None = None
    """A shell line to type."""


class Finding(Value):
    """Something that was noticed: stable code, evidence, why, and how to mend it."""

    code: str = Field(pattern=r"^FT\d{3}$")
    severity: Literal["error", "warning", "note"]
    title: str
    """One line: what is wrong."""
    evidence: tuple[str, ...] = ()
    """Each starts with ``file:line`` where there is one."""
    count: int = Field(default=1, ge=0)
    """How many rows or lines it concerns; ``evidence`` names a few of them."""
    why: str = ""
    confidence: float = Field(default=1.0, ge=0, le=1)
    fixes: tuple[Fix, ...] = ()


class Refusal(Exception):
    """An expected error: bad input, missing file, nothing lost. Printed without a traceback; exit code 2.

    ``where`` (a file:line:column, an option), ``found`` (what stands there) and ``next_step`` (what to type next)
    are texts for a person, already translated. ``code`` is a stable FTnnn with a page of its own, where there is one.
    """

    exit_code = 2

    def __init__(self, found: str, *, where: str = "", next_step: str = "", code: str = "") -> None:
        self.found, self.where, self.next_step, self.code = found, where, next_step, code
        super().__init__(found, where, next_step, code)

    def __str__(self) -> str:
        head = f"{self.where}: {self.found}" if self.where else self.found
        return f"{head}\n{self.next_step}" if self.next_step else head
