"""Work without gradients that survives out-of-memory: evaluation and prediction in micro-batches, single calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from fitune.microbatch.before import Random
from fitune.microbatch.governor import Change, Governor
from fitune.microbatch.knobs import window_does_not_fit
from fitune.microbatch.meter import Meter, meter_for
from fitune.microbatch.oom import OutOfMemory, forget, out_of_memory, release
from fitune.microbatch.split import Budget, MicroBatch, split

R = TypeVar("R")


class Sweep:
    """A pass over many windows in micro-batches. Keeps its budget from one pass to the next."""

    def __init__(
        self,
        budget: Budget | None = None,
        device: torch.device | str = "cpu",
        *,
        on_change: Callable[[Change], object] | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._device = torch.device(device)
        self._governor = Governor(budget or Budget())
        self._on_change = on_change
        self._meter = meter if meter is not None else meter_for(self._device)

    @property
    def budget(self) -> Budget:
        """In force for the next micro-batch."""
        return self._governor.budget

    def over(self, run: Callable[[Sequence[int]], R], lengths: Sequence[int]) -> Iterator[tuple[MicroBatch, R]]:
        """``run(indices)`` for micro-batches of the windows, heaviest first, each window once.

        A micro-batch that runs out of memory is dropped and divided further; those done stay done. Raises
        ``DoesNotFit`` (FT301) when one window alone does not fit. Keep results small: off the device, reduced.
        """
        left = list(range(len(lengths)))
        while left:
            done: set[int] = set()
            for piece in split([lengths[index] for index in left], self._governor.budget):
                piece = MicroBatch(tuple(left[index] for index in piece.indices), piece.longest_tokens)
                failure, results = attempted(lambda piece=piece: run(piece.indices))
                if failure is not None:
                    release(self._device)
                    self._shrink(piece, failure)
                    break
                done.update(piece.indices)
                yield piece, results.pop()
            left = [index for index in left if index not in done]

    def _shrink(self, piece: MicroBatch, failure: OutOfMemory) -> None:
        room = self._meter.available_bytes() if self._meter else None
        smaller = self._governor.smaller(piece, failure, room, in_backward=False)
        if smaller is None:
            raise window_does_not_fit(piece.longest_tokens, 0, failure, [])
        before = self._governor.tokens
        self._governor.shrink_to(smaller, piece.padded_tokens)
        if self._on_change:
            self._on_change(Change(before, smaller, "out_of_memory", failure=failure))


def retried(call: Callable[[], R], device: torch.device | str = "cpu", tries: int = 3) -> R:
    """``call()``; on out-of-memory all it held is dropped, the cache given back, and it is called again.

    For work that cannot be divided (a norm, a copy for a checkpoint) and changes nothing before it has what it needs.
    """
    device = torch.device(device)
    before = Random(device)
    for _attempt in range(tries - 1):
        failure, results = attempted(call)
        if failure is None:
            return results.pop()
        release(device)
        before.restore()
    return call()


def attempted(call: Callable[[], R]) -> tuple[OutOfMemory | None, list[R]]:
    """``call()`` once: the out-of-memory and no result, or no failure and one. Other errors pass through."""
    results: list[R] = []
    failure: OutOfMemory | None = None
    try:
        results.append(call())
    except RuntimeError as error:
        failure = out_of_memory(error)
        if failure is None:
            raise
        forget(error)
    return failure, results
