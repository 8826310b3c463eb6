"""Divide the windows of one optimizer step into micro-batches. Deterministic: the same lengths give the same split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """What one forward pass may hold. ``None`` is no limit of that kind; both ``None``: the whole step at once."""

    tokens: int | None = None
    """Most padded tokens: windows in the micro-batch x the longest of them."""
    windows: int | None = None
    """Most windows."""

    def __post_init__(self) -> None:
        for name, value in (("tokens", self.tokens), ("windows", self.windows)):
            if value is not None and value < 1:
                raise ValueError(f"Budget.{name} must be at least 1, not {value}")


@dataclass(frozen=True)
class MicroBatch:
    """Some windows of a step, longest first."""

    indices: tuple[int, ...]
    longest_tokens: int
    """Tokens of its longest window, which all others are padded to."""

    @property
    def padded_tokens(self) -> int:
        """What it costs: windows x longest window."""
        return len(self.indices) * self.longest_tokens


def split(lengths: Sequence[int], budget: Budget) -> list[MicroBatch]:
    """Sort windows by length, fill micro-batches up to ``budget``; the heaviest micro-batch stands first.

    ``lengths`` are tokens per window. Every window lands in exactly one micro-batch; one that exceeds the budget alone
    gets a micro-batch of its own. Windows of equal length keep their order.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    pieces: list[MicroBatch] = []
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        if longest < 1:
            raise ValueError(f"window {order[start]} has {longest} tokens")
        room = len(order) - start
        if budget.tokens is not None:
            room = min(room, max(1, budget.tokens // longest))
        if budget.windows is not None:
            room = min(room, budget.windows)
        pieces.append(MicroBatch(tuple(order[start : start + room]), longest))
        start += room
    # Heaviest first: what does not fit fails in the first pass of the step, not after all the others have run.
    return sorted(pieces, key=lambda piece: -piece.padded_tokens)
