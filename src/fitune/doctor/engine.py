"""From symptoms to ranked findings."""

from __future__ import annotations

from collections.abc import Iterable

from fitune.doctor.log import Log
from fitune.doctor.pages import Rule
from fitune.doctor.symptom import Symptom
from fitune.messages import _
from fitune.values import Finding, Fix

_ORDER = {"error": 0, "warning": 1, "note": 2}


def page_fix(rule: Rule) -> Fix:
    """The page's "How to fix" as a Fix."""
    module = rule.module
    command: str | None = getattr(module, "COMMAND", None)
    return Fix(
        safety=getattr(module, "SAFETY", "display"),
        text=rule.page().fix,
        settings=getattr(module, "SETTINGS", {}),
        command=command.replace("FILE", _("FILE")) if command else None,
    )


def to_finding(rule: Rule, seen: Symptom) -> Finding:
    """A Finding in the reader's language; what the symptom leaves open is taken from the page."""
    page = rule.page()
    return Finding(
        code=rule.code,
        severity=seen.severity or rule.severity,
        title=seen.title or page.title,
        evidence=seen.evidence,
        count=seen.count,
        why=seen.why or page.why,
        confidence=seen.confidence,
        fixes=seen.fixes or (page_fix(rule),),
    )


def rank(pairs: Iterable[tuple[Rule, Symptom]], log: Log | None = None) -> tuple[Finding, ...]:
    """Findings, the likeliest cause first.

    By severity, cause before consequence, confidence (more in the exception the program died of), line.
    """

    pairs = list(pairs)
    codes = {rule.code for rule, _seen in pairs}

    def key(pair: tuple[Rule, Symptom]) -> tuple[float, ...]:
        rule, seen = pair
        # What follows from another finding comes after it, however loud it is.
        consequence = bool(codes & getattr(rule.module, "FOLLOWS", set[str]()))
        fatal = 0.2 if log is not None and any(map(log.in_last_traceback, (seen.line, *seen.lines))) else 0.0
        return (_ORDER[seen.severity or rule.severity], consequence, -(seen.confidence + fatal), seen.line)

    return tuple(to_finding(rule, seen) for rule, seen in sorted(pairs, key=key))
