"""Trace: every storage of a simulated run with its birth and death, to be replayed on any card."""

from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from fitune.memory.allocator import Allocator, Block, DoesNotFit
from fitune.memory.semantics import Semantics, workspace_bytes


@dataclass(frozen=True, slots=True)
class Storage:
    """One stretch of memory that tensors lived on."""

    size_bytes: int
    op: str
    """The op that made it, such as ``mm``; ``resident`` for what was there before the first step."""
    module: str
    """Dotted path of the module whose forward (or backward) made it."""
    phase: str
    """``resident``, ``forward``, ``backward`` or ``optimizer``."""
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Op:
    """One op of the last step, for estimates of time."""

    name: str
    phase: str
    dtype: str
    flops: int
    """Multiply and add count as two; 0 for ops that are bound by memory."""
    moved_bytes: int
    """Inputs read plus outputs written; 0 for views."""


@dataclass(frozen=True)
class Replay:
    """How a trace goes on one card. All bytes are the allocator's: the CUDA context comes on top."""

    peak_allocated_bytes: int
    peak_reserved_bytes: int
    fits: bool
    retries: int
    """Cached segments had to be given back so often: each stalls the card."""
    failed_at: int | None
    """Index of the event that did not fit."""
    peak_event: int
    """Index of the event after which most bytes were allocated."""
    timeline: tuple[tuple[int, int], ...]
    """(allocated, reserved) after every event; empty unless asked for."""


@dataclass
class Trace:
    """What a few steps of training did to memory. Peaks are over all of them, without the CUDA context."""

    semantics: Semantics
    storages: list[Storage] = field(default_factory=list[Storage])
    events: "array[int]" = field(default_factory=lambda: array("l"))
    """n + 1: storage n was born; -n - 1: it died."""
    steps: list[int] = field(default_factory=list[int])
    """Index of the first event of each step."""
    workspaces: list[int] = field(default_factory=list[int])
    """Storages that are cuBLAS workspaces: their size depends on the card."""
    ops: list[Op] = field(default_factory=list[Op])
    """Ops of the last step."""
    _replayed: dict[tuple[Any, ...], Replay] = field(default_factory=dict[tuple[Any, ...], Replay], repr=False)

    @property
    def peak_allocated_bytes(self) -> int:
        """``torch.cuda.max_memory_allocated`` on a card where everything fits."""
        return self.replay().peak_allocated_bytes

    @property
    def peak_reserved_bytes(self) -> int:
        """``torch.cuda.max_memory_reserved`` on a card where everything fits."""
        return self.replay().peak_reserved_bytes

    def replay(
        self,
        limit_bytes: int | None = None,
        *,
        compute_capability: tuple[int, int] | None = None,
        expandable_segments: bool = False,
        timeline: bool = False,
    ) -> Replay:
        """Run the trace through the allocator of a card.

        ``limit_bytes``: what the allocator may reserve, context excluded; None: no limit. ``compute_capability``
        changes the size of cuBLAS' workspaces alone: a card with another attention kernel (``choose_kernel``) needs a
        trace of its own.
        """
        key = (limit_bytes, compute_capability, expandable_segments, timeline, len(self.events))
        if key not in self._replayed:
            self._replayed[key] = self._run(limit_bytes, compute_capability, expandable_segments, timeline)
        return self._replayed[key]

    def _run(
        self, limit: int | None, compute_capability: tuple[int, int] | None, expandable: bool, timeline: bool
    ) -> Replay:
        sizes = [storage.size_bytes for storage in self.storages]
        if compute_capability is not None:
            for index in self.workspaces:
                sizes[index] = workspace_bytes(compute_capability)
        allocator = Allocator(limit, expandable_segments=expandable)
        blocks: dict[int, Block | None] = {}
        series: list[tuple[int, int]] = []
        peak, peak_event, failed_at = -1, 0, None
        for index, event in enumerate(self.events):
            if event < 0:
                allocator.free(blocks.pop(-event - 1))
            else:
                try:
                    blocks[event - 1] = allocator.allocate(sizes[event - 1])
                except DoesNotFit:
                    failed_at = index
                    break
                if allocator.allocated_bytes > peak:
                    peak, peak_event = allocator.allocated_bytes, index
            if timeline:
                series.append((allocator.allocated_bytes, allocator.reserved_bytes))
        return Replay(
            allocator.peak_allocated_bytes,
            allocator.peak_reserved_bytes,
            failed_at is None,
            allocator.retries,
            failed_at,
            peak_event,
            tuple(series),
        )

    def alive(self, event: int | None = None) -> list[Storage]:
        """Storages alive after an event (default: at the peak), largest first."""
        last = self.replay().peak_event if event is None else event
        living: set[int] = set()
        for entry in self.events[: last + 1]:
            if entry > 0:
                living.add(entry - 1)
            else:
                living.discard(-entry - 1)
        return sorted((self.storages[n] for n in living), key=lambda s: -s.size_bytes)

    def phase(self, event: int) -> str:
        """In which phase an event happened: the phase of the latest birth."""
        for entry in reversed(self.events[: event + 1]):
            if entry > 0:
                return self.storages[entry - 1].phase
        return "resident"

    def summary(self, *, largest: int = 10) -> dict[str, Any]:
        """JSON-able: peaks, where the peak is, what is alive there by phase and the largest storages."""
        replay = self.replay()
        alive = self.alive()
        by_phase: dict[str, int] = defaultdict(int)
        for storage in alive:
            by_phase[storage.phase] += storage.size_bytes
        return {
            "peak_allocated_bytes": replay.peak_allocated_bytes,
            "peak_reserved_bytes": replay.peak_reserved_bytes,
            "peak_phase": self.phase(replay.peak_event),
            "alive_at_peak_bytes_by_phase": dict(by_phase),
            "largest_at_peak": [
                {"bytes": s.size_bytes, "module": s.module, "op": s.op, "shape": list(s.shape), "dtype": s.dtype}
                for s in alive[:largest]
            ],
            "steps": len(self.steps),
            "storages": len(self.storages),
            "step_flops": sum(op.flops for op in self.ops),
            "step_moved_bytes": sum(op.moved_bytes for op in self.ops),
            "step_ops": len(self.ops),
        }
