"""What the ranks of a run must agree on, so that one rank's out-of-memory never leaves the others waiting.

Every rank meets the same collectives in every attempt, whatever happened to it: nothing is exchanged inside forward
and backward (DistributedDataParallel's own exchange is switched off), the verdict of the attempt is, and the gradients
are summed only when all ranks have theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fitune.messages import _
from fitune.microbatch.oom import out_of_memory
from fitune.microbatch.surviving import retried


class RankLost(RuntimeError):
    """Another rank is gone: it was killed, or its connection broke."""


class Ranks:
    """The ranks of this run; one alone when torch.distributed is not initialised."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self._model: Any = model
        initialised = dist.is_available() and dist.is_initialized()
        self.count = dist.get_world_size() if initialised else 1
        self._device = device if initialised and dist.get_backend() == "nccl" else torch.device("cpu")

    def quiet(self) -> AbstractContextManager[object]:
        """A context in which DistributedDataParallel exchanges nothing by itself."""
        if self.count == 1 or not hasattr(self._model, "no_sync"):
            return nullcontext()
        # Else its forward sends buffers around, a collective that a rank which failed before would miss.
        self._model.require_forward_param_sync = False
        return self._model.no_sync()

    def gather(self, values: list[float]) -> list[list[float]]:
        """The same number of values from every rank, in rank order."""
        if self.count == 1:
            return [values]
        # What the exchange needs is made first: a rank must not fail on its way to the others.
        mine, all_values = retried(lambda: self._row(values), self._device)
        self._exchange(dist.all_gather, all_values, mine)
        return [row.tolist() for row in all_values]

    def _row(self, values: list[float]) -> tuple[Tensor, list[Tensor]]:
        mine = torch.tensor(values, dtype=torch.float64, device=self._device)
        return mine, [torch.empty_like(mine) for _rank in range(self.count)]

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Sum each tensor over all ranks, in place. All ranks must bring the same tensors."""
        if self.count > 1:
            for tensor in tensors:
                self._exchange(dist.all_reduce, tensor)

    def _exchange(self, collective: Callable[..., object], *arguments: object) -> None:
        try:
            collective(*arguments)
        except RuntimeError as error:
            # Out of memory inside an exchange cannot be survived: nobody knows how far the others are.
            if out_of_memory(error):
                raise
            raise RankLost(_("another rank of this run is gone: {error}", error=str(error).splitlines()[0])) from error
