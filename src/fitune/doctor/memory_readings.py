"""Memory that a training prints step by step: does it only ever grow?"""

from __future__ import annotations

import re
from itertools import pairwise

from fitune.doctor.log import Hit, Log

_LINE = r"mem(?:ory)?|alloc|reserved|显存|内存|vram|\brss\b|\bmax_?rss\b"
_SIZE = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:/\s*\d+(?:\.\d+)?\s*)?(GiB|GB|G|MiB|MB|M|KiB|KB|K|bytes|B)?(?![\w.])",
    re.IGNORECASE,
)
_NAMES_IT = re.compile(_LINE, re.IGNORECASE)
_NO_READING = re.compile(r"tried|already|capacity|total|limit|free|of which|requested", re.IGNORECASE)
_UNITS = {"G": 2**30, "M": 2**20, "K": 2**10, "B": 1}


def growing_memory(log: Log, before_line: int | None = None) -> list[Hit]:
    """At least five readings of one kind up to that line that rise to the end; [] when there are none.

    A peak never falls, so rising is not enough: it must go on rising as fast as before.
    """
    kinds: dict[str, list[tuple[float, Hit]]] = {}
    for hit in log.find(_LINE):
        if before_line is None or hit.line.number < before_line:
            for name, size in _readings(hit.line.text):
                kinds.setdefault(name, []).append((size, hit))
    for readings in kinds.values():
        sizes = [size for size, _hit in readings]
        if len(sizes) >= 5 and sizes[-1] > 1.5 * sizes[0] and _rises_to_the_end(sizes):
            return [hit for _size, hit in readings]
    return []


def grows_threefold(hits: list[Hit]) -> bool:
    """Whether the last of these lines tells three times the first's memory."""
    first, last = (dict(_readings(hit.line.text)) for hit in (hits[0], hits[-1]))
    return any(last.get(name, 0) > 3 * size for name, size in first.items())


def _rises_to_the_end(sizes: list[float]) -> bool:
    late = sizes[-1] - sizes[len(sizes) * 2 // 3]
    return all(a <= b for a, b in pairwise(sizes)) and late > 0.4 * (sizes[-1] - sizes[0]) / 3


def _readings(text: str) -> list[tuple[str, float]]:
    """(what stands before the number, bytes) of every size whose name speaks of memory."""
    found: list[tuple[str, float]] = []
    end = 0
    for match in _SIZE.finditer(text):
        name = re.sub(r"\d+", "#", text[max(end, match.start() - 40) : match.start()]).strip().lower()
        end = match.end()
        named = _NAMES_IT.search(name) or (name.startswith(("peak", "max")) and found)
        if not named or _NO_READING.search(name):
            continue
        unit = (match[2] or _unit_of_name(name) or "").upper()[:1]
        size = float(match[1]) * _UNITS.get(unit, 1)
        # Without any unit it is a count of bytes, or nothing that can be told.
        if unit or size >= 2**20:
            found.append((name, size))
    return found


def _unit_of_name(name: str) -> str:
    told = re.search(r"[_( /](g|m|k)i?b\b", name)
    return told[1] if told else ""
