"""One optimizer step's loss and gradient, in as many passes as the memory asks for.

Batch size is a learning choice, the micro-batch a memory choice: whatever the split, the step's loss is
``sum of loss_sum over its micro-batches / total_weight`` and its gradient the gradient of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from fitune.microbatch.split import Budget, MicroBatch, split


class StepItems(Protocol):
    """The windows of one optimizer step."""

    @property
    def lengths(self) -> Sequence[int]:
        """Tokens of each window."""
        ...

    @property
    def total_weight(self) -> float:
        """What the step's summed loss is divided by: its labelled tokens, or its examples (weighted ones weighted)."""
        ...

    def collate(self, indices: Sequence[int], /) -> Any:
        """The inputs of a micro-batch of these windows, on the device, padded to the longest of them."""
        ...


@dataclass(frozen=True)
class StepResult:
    """What one step came to. Its gradient stands in the parameters' ``.grad``."""

    loss: Tensor
    """0-dim, detached, on the device: the mean over the step's total weight (read it with ``.item()``, which waits)."""
    total_weight: float
    """Of this step, over all ranks."""
    passes: int
    """Forward+backward passes of the attempt that succeeded."""
    tokens: int
    """Tokens of the step's windows, padding excluded (this rank's)."""
    padded_tokens: int
    """The same with padding."""
    retries: int = 0
    """Attempts that ran out of memory before this one."""


class Stepper:
    """Runs optimizer steps: ``loss_sum(inputs)`` is the summed (weighted) loss of a micro-batch, a 0-dim tensor.

    ``backward`` replaces ``loss.backward()`` (a loss scaler: ``lambda loss: scaler.scale(loss).backward()``).
    """

    def __init__(
        self,
        loss_sum: Callable[[Any], Tensor],
        model: nn.Module,
        *,
        budget: Budget | None = None,
        backward: Callable[[Tensor], object] | None = None,
    ) -> None:
        self._loss_sum, self._model = loss_sum, model
        self._backward = backward or torch.Tensor.backward
        self.budget = budget or Budget()

    def run(self, items: StepItems) -> StepResult:
        """Loss and gradient of the step. The gradient is added to what ``.grad`` holds, as ``backward`` does."""
        lengths = items.lengths
        pieces = split(lengths, self.budget)
        if not pieces:
            raise ValueError("a step needs at least one window")
        total_weight = float(items.total_weight)
        if not total_weight > 0:
            raise ValueError(f"the total weight of a step must be positive, not {total_weight}")
        loss = self._passes(items, pieces, total_weight)
        padded = sum(piece.padded_tokens for piece in pieces)
        return StepResult(loss, total_weight, len(pieces), int(sum(lengths)), padded)

    def _passes(self, items: StepItems, pieces: list[MicroBatch], total_weight: float) -> Tensor:
        total: Tensor | None = None
        for piece in pieces:
            loss = self._loss_sum(items.collate(piece.indices)) / total_weight
            self._backward(loss)
            total = loss.detach() if total is None else total + loss.detach()
        assert total is not None
        return total
