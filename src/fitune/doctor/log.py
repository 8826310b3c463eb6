"""A log as text that rules can read: decoded, ANSI stripped, progress bars resolved, ranks recognised."""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import cast

from fitune.doctor.needles import may_match
from fitune.doctor.symptom import Severity, Symptom
from fitune.machine import mask_secrets
from fitune.values import Fix

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_BAR = re.compile(r"\d+%\|.*?\|?|\d+/\d+ \[|it/s|s/it|\d+(?:\.\d+)?[kMG]?B/s|━")
_RANK = re.compile(
    r"^\s*(?:\[(?:rank|default|Rank )\s*(\d+)\]\s*:?|(?:\S+: )?\[?rank[ =](\d+)\]?:|\[1,(\d+)\]<std\w+>:?|(\d+): )\s?"
)
# A row of data or a prediction that a program prints: what the text says is not the program's own trouble.
_SHOWN_ROW = re.compile(
    r"^(?!\s|[\w.]*(?:Error|Exception|Warning|Exit)\b)(?=.*(?:\b(?:text|sentence|content|sample|example)\b ?\d*['\"]?"
    r"|文本|样例|样本|例子)\s*\d*\s*[:=：])(?=.*(?:->|→|\b(?:label|gold|pred\w*|score|prob\w*)\b|标签|预测)).*",
    re.IGNORECASE,
)
_LAUNCHER = re.compile(
    r"bin[\\/](?:torchrun|accelerate|deepspeed)\b|distributed[\\/](?:run|launch)\.py|accelerate[\\/]commands[\\/]"
)
# What other programs put before a line: containers, schedulers, loggers, a drawn frame.
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?",
        r"[\w.-]+-\d+ +\| ?",
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w.@-]+\[\d+\]: ",
        r"\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?: ?[-|:] ?| )",
        r"\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\]? ?(?:[-|:] ?)(?:[\w.]+ ?[-|:] )?(?=[A-Z \t]|$)",
        r"[│┃|] (?=.*[│┃]\s*$)",
    )
)


def decode(raw: bytes) -> str:
    """Bytes of a console: UTF-8 or UTF-16 with or without a mark, else GB18030, else Latin-1 (which never fails)."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    if len(raw) > 3 and raw[1::2].count(0) > len(raw) // 4:
        return raw.decode("utf-16-le", "replace")
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError as error:
            # A log cut in the middle of a character is still UTF-8.
            if encoding == "utf-8" and error.start >= len(raw) - 4:
                return raw.decode(encoding, "replace")
    return raw.decode("latin-1")


@dataclass(frozen=True)
class Line:
    """One line as a reader sees it."""

    number: int
    """1-based line of the file."""
    text: str
    rank: int | None = None


@dataclass(frozen=True)
class Hit:
    """A pattern found in a line."""

    line: Line
    match: re.Match[str]
    evidence: str


def _visible(raw: str) -> Iterator[str]:
    """What is left of a line after its carriage returns: text is kept, of the progress bars only the last."""
    parts = [part.rstrip() for part in raw.split("\r") if part.strip()]
    for index, part in enumerate(parts):
        if index == len(parts) - 1 or not _BAR.search(part):
            yield part


def _container_line(raw: str) -> str:
    """The text of a line that a container's log driver wrapped into JSON."""
    if raw.startswith(('{"log":', '{"message":', '{"msg":')):
        try:
            row = json.loads(raw)
        except ValueError:
            return raw
        if isinstance(row, dict):
            text = next(iter(cast(dict[str, object], row).values()), raw)
            return str(text).rstrip("\n")
    return raw


def _without_prefixes(text: str) -> str:
    for prefix in _PREFIXES:
        if found := prefix.match(text):
            text = text[found.end() :]
    return text


@cache
def _compile(pattern: str, flags: int) -> re.Pattern[str]:
    # The rules have more patterns than re's own cache has room for.
    return re.compile(pattern, flags | re.MULTILINE)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _first_matches(compiled: list[re.Pattern[str]], text: str, starts: list[int]) -> dict[int, re.Match[str]]:
    """Line index -> the first pattern's match in it."""
    found: dict[int, re.Match[str]] = {}
    for pattern in compiled:
        for match in pattern.finditer(text):
            found.setdefault(bisect_right(starts, match.start()) - 1, match)
    return found


class Log:
    """A normalised log. ``name`` stands in the evidence (``name:line``)."""

    def __init__(self, text: str | bytes, name: str = "log") -> None:
        self.name = name
        self.text = text = decode(text) if isinstance(text, bytes) else text
        text = _ANSI.sub("", text.replace("\r\n", "\n").replace("\x00", ""))
        lines: list[Line] = []
        for number, raw in enumerate(text.split("\n"), 1):
            for part in _visible(_container_line(raw)):
                rank: int | None = None
                if found := _RANK.match(part):
                    rank, part = next(int(group) for group in found.groups() if group), part[found.end() :]
                lines.append(Line(number, _without_prefixes(part), rank))
        self.lines = tuple(lines)
        self._found: dict[tuple[tuple[str, ...], int], list[Hit]] = {}

    def evidence(self, line: Line, limit: int = 400) -> str:
        """``file:line: text``, secrets masked."""
        text = mask_secrets(line.text.strip())
        return f"{self.name}:{line.number}: {text if len(text) <= limit else text[: limit - 1] + '…'}"

    def find(self, *patterns: str, flags: int = re.IGNORECASE) -> list[Hit]:
        """All lines in which a pattern is found; where there is none, also across a line wrapped by a console."""
        key = (patterns, flags)
        if key not in self._found:
            self._found[key] = self._find(patterns, flags)
        return list(self._found[key])

    def _find(self, patterns: tuple[str, ...], flags: int) -> list[Hit]:
        compiled = [_compile(pattern, flags) for pattern in patterns if may_match(pattern, self._lower)]
        found = _first_matches(compiled, self._joined, self._starts)
        if found:
            return [Hit(self.lines[i], match, self.evidence(self.lines[i])) for i, match in sorted(found.items())]
        compiled = [_compile(pattern, flags) for pattern in patterns if may_match(pattern, self._wrapped_lower)]
        wrapped = _first_matches(compiled, self._wrapped_text, self._wrapped_starts)
        hits: dict[int, Hit] = {}
        for index, match in sorted(wrapped.items()):
            line, whole = self._wrapped[index]
            hits.setdefault(line.number, Hit(line, match, self.evidence(Line(line.number, whole))))
        return list(hits.values())

    @cached_property
    def _lower(self) -> str:
        return self._joined.lower()

    @cached_property
    def _wrapped_lower(self) -> str:
        return self._wrapped_text.lower()

    @cached_property
    def _joined(self) -> str:
        return "\n".join("" if _SHOWN_ROW.match(line.text) else line.text for line in self.lines)

    @cached_property
    def _starts(self) -> list[int]:
        return _line_starts(self._joined)

    @cached_property
    def _wrapped(self) -> list[tuple[Line, str]]:
        """Neighbouring lines as one, for consoles that break long lines, with and without a space."""
        return [
            (first, first.text.rstrip() + glue + second.text.lstrip())
            for first, second in pairwise(self.lines)
            if len(first.text) >= 72 and not first.text.startswith("  File ") and not _SHOWN_ROW.match(first.text)
            for glue in ("", " ")
        ]

    @cached_property
    def _wrapped_text(self) -> str:
        return "\n".join(whole for _first, whole in self._wrapped)

    @cached_property
    def _wrapped_starts(self) -> list[int]:
        return _line_starts(self._wrapped_text)

    def has(self, *patterns: str) -> bool:
        """Whether one of the patterns is found."""
        return bool(self.find(*patterns))

    @cached_property
    def last_traceback(self) -> tuple[int, int]:
        """First and last index in ``lines`` of the last exception and those it was raised from; (0, -1): none."""
        starts = [
            i
            for i, line in enumerate(self.lines)
            if "Traceback (most recent call last)" in line.text and not self._is_launchers(i)
        ]
        if not starts:
            return (0, -1)
        start = starts[-1]
        for previous in reversed(starts[:-1]):
            between = self.lines[previous:start]
            if any("above exception" in line.text for line in between):
                start = previous
            else:
                break
        return (start, len(self.lines) - 1)

    def _is_launchers(self, start: int) -> bool:
        """A launcher's traceback says no more than that its child failed."""
        frames = [line.text for line in self.lines[start + 1 : start + 9] if line.text.startswith("  File ")]
        return any(_LAUNCHER.search(text) for text in frames)

    def in_last_traceback(self, number: int) -> bool:
        """Whether the line belongs to the exception the program died of."""
        first, last = self.last_traceback
        return last >= 0 and self.lines[first].number <= number <= self.lines[last].number


def matches(
    log: Log,
    patterns: Iterable[str],
    *,
    confidence: float = 0.95,
    unless: Iterable[str] = (),
    fixes: tuple[Fix, ...] = (),
    severity: Severity | None = None,
    title: str = "",
) -> Iterator[Symptom]:
    """One symptom when any pattern is found and none of ``unless`` is."""
    hits = log.find(*patterns)
    if not hits or (unless and log.has(*unless)):
        return
    yield symptom(hits, confidence=confidence, fixes=fixes, severity=severity, title=title)


def symptom(
    hits: list[Hit],
    *,
    confidence: float = 0.95,
    fixes: tuple[Fix, ...] = (),
    severity: Severity | None = None,
    title: str = "",
    why: str = "",
) -> Symptom:
    """A symptom with the first few hits as its evidence."""
    shown: dict[str, None] = {}
    for hit in hits:
        text = hit.evidence.split(": ", 1)[-1]
        if all(text != seen.split(": ", 1)[-1] for seen in shown):
            shown[hit.evidence] = None
        if len(shown) == 3:
            break
    return Symptom(
        evidence=tuple(shown),
        confidence=confidence,
        line=hits[0].line.number,
        lines=tuple(hit.line.number for hit in hits),
        fixes=fixes,
        severity=severity,
        title=title,
        why=why,
        count=len(hits),
    )
