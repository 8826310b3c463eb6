"""The catalogue of GPU types: ``cards.toml``, and the rules that its head states."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fitune.messages import _
from fitune.values import Card, Refusal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

GIB = 1 << 30


@dataclass(frozen=True)
class ContextSpread:
    """Bytes of a CUDA context outside the allocator: typical, and the most that was seen with lazy loading."""

    least_sm: tuple[int, int]
    typical_bytes: int
    highest_bytes: int
    source: str


CONTEXT = (
    ContextSpread((9, 0), 500 << 20, 700 << 20, "context: an assumption; kernel images grow with the generation"),
    ContextSpread(
        (0, 0), 287 << 20, 500 << 20, "context: 287 MB with lazy loading (CUDA 12); no table per card exists"
    ),
)
"""Newest first; the first whose ``least_sm`` a card reaches holds."""


@cache
def cards() -> tuple[Card, ...]:
    """All GPU types, in the order of the file; those without CUDA (``cpu``, ``apple``) stand last."""
    plain = tomllib.loads((Path(__file__).parent / "cards.toml").read_text(encoding="utf-8"))
    return tuple(_card(row, plain["families"]) for row in plain["card"])


def card_of(name: str) -> Card:
    """The card with this id, or the maker's name.

    Raises:
        Refusal: no such card; the nearest ids are named.
    """
    wanted = _plain(name)
    for card in cards():
        if wanted in (_plain(card.id), _plain(card.name)):
            return card
    ids = [card.id for card in cards()]
    # Without the memory: rtx3060 means the first of its kind.
    if starts := [i for i in ids if _plain(i).startswith(wanted)] if wanted else []:
        if len(starts) == 1:
            return next(card for card in cards() if card.id == starts[0])
        near = starts
    else:
        near = difflib.get_close_matches(name.lower(), ids, n=4, cutoff=0.5)
    raise Refusal(
        _("the catalogue has no card {name}", name=name),
        where="--card",
        next_step=_("Near: {ids}", ids=", ".join(near)) if near else _("All cards: fitune cards"),
        code="FT350",
    )


def match_device(name: str, memory_bytes: int) -> Card | None:
    """The card type of a device as the driver names it; None: not in the catalogue. Of several the nearest in size."""
    wanted = _model(name)
    with_cuda = [card for card in cards() if card.compute_capability]
    same = [c for c in with_cuda if _model(c.name) == wanted]
    same = same or [c for c in with_cuda if wanted.startswith(_model(c.name))]
    return min(same, key=lambda c: abs(c.memory_bytes - memory_bytes)) if same else None


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|[^a-z0-9]+", "", name.lower())


def _model(name: str) -> str:
    """Without the memory size, which some drivers' names have and others' have not."""
    return _plain(re.sub(r"[-\s]+\d+\s?gb\b", "", name.lower()))


def _card(row: dict[str, Any], families: dict[str, Any]) -> Card:
    if row["family"] == "none":
        return Card(
            id=row["id"],
            name=row["name"],
            memory_bytes=0,
            compute_capability=None,
            fp32_tflops=0,
            fp16_tflops=0,
            bf16_tflops=0,
            bandwidth_bytes_per_second=0,
            context_bytes=0,
            sources=("no CUDA",),
        )
    family = families[row["family"]]
    sm = tuple(row.get("sm", family["sm"]))
    spread = next(entry for entry in CONTEXT if sm >= entry.least_sm)
    fp32 = row.get("fp32") or 2 * row["cores"] * row["boost_mhz"] / 1e6
    half = row.get("fp16") or fp32 * family["half"]
    memory, told = _memory(row)
    rate = "rates: the maker's datasheet" if "fp16" in row else "fp32: computed, 2 x cores x boost"
    return Card(
        id=row["id"],
        name=row["name"],
        memory_bytes=memory,
        compute_capability=(int(sm[0]), int(sm[1])),
        fp32_tflops=round(fp32, 3),
        fp16_tflops=round(half, 3),
        bf16_tflops=round(half, 3) if row.get("bf16", family.get("bf16")) else 0,
        bandwidth_bytes_per_second=row["bandwidth_gb_s"] * 1e9,
        context_bytes=spread.typical_bytes,
        sources=(told, rate, family["source"], "bandwidth, cores, clock: the maker's specification", spread.source),
    )


def _memory(row: dict[str, Any]) -> tuple[int, str]:
    """Bytes that a process sees in all, and where that was seen or how it was computed."""
    if seen := row.get("memory_seen_gib"):
        return int(seen * GIB), f"memory: {seen} GiB printed in {row['memory_seen_in']}"
    box = row["box_gb"]
    if row.get("kind") == "ecc":
        return int(box * 15 / 16 * 0.97 * GIB), "memory: computed, 15/16 of the box (ECC) less 3 %"
    if row.get("kind") == "hbm":
        return int(box * 0.984 * GIB), "memory: computed, the box less 1.6 %"
    return int((box - max(0.25, box * 0.028)) * GIB), "memory: computed, the box less 2.8 %, at least 0.25 GiB"
