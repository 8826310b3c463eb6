"""One optimizer step's loss and gradient, in as many passes as the memory asks for; survives out-of-memory.

Batch size is a learning choice, the micro-batch a memory choice: whatever the split, the step's loss is
``sum of loss_sum over its micro-batches / total_weight`` and its gradient the gradient of that. When an attempt runs
out of memory, all it holds is dropped, gradients, buffers and random generators go back to where they were, the
budget shrinks and the whole step runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from fitune.messages import _
from fitune.microbatch.before import Buffers, Gradients, Random
from fitune.microbatch.governor import Change, Governor
from fitune.microbatch.knobs import Knob, window_does_not_fit
from fitune.microbatch.meter import Meter, meter_for
from fitune.microbatch.oom import OutOfMemory, forget, out_of_memory, release
from fitune.microbatch.optimizer import Protection, apply_optimizer, clip_gradients, prepare_optimizer
from fitune.microbatch.ranks import Ranks
from fitune.microbatch.split import Budget, MicroBatch, split
from fitune.microbatch.surviving import retried

# Passes are measured at every budget for a few steps, then now and then: reading the allocator costs ~0.1 ms.
_MEASURED_STEPS, _MEASURE_EVERY = 4, 32


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
    """0-dim, detached, on the device: mean over ``total_weight``, all ranks included (``.item()`` waits for it)."""
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


@dataclass
class _Attempt:
    """How an attempt ended. Holds no traceback."""

    loss: Tensor | None = None
    failure: OutOfMemory | None = None
    failed: MicroBatch | None = None
    in_backward: bool = False
    error: Exception | None = None


class Stepper:
    """Runs optimizer steps: ``loss_sum(inputs)`` is the summed (weighted) loss of a micro-batch, a 0-dim tensor.

    ``backward`` replaces ``loss.backward()`` (a loss scaler: ``lambda loss: scaler.scale(loss).backward()``).
    ``knobs`` are turned in order when one window alone does not fit. ``on_change`` hears of every change of the budget.
    With torch.distributed initialised, every rank calls ``run`` for its own windows of the same step.
    """

    def __init__(
        self,
        loss_sum: Callable[[Any], Tensor],
        model: nn.Module,
        *,
        budget: Budget | None = None,
        backward: Callable[[Tensor], object] | None = None,
        knobs: Sequence[Knob] = (),
        on_change: Callable[[Change], object] | None = None,
        meter: Meter | None = None,
        protect_optimizer: Protection = "auto",
    ) -> None:
        self._protect: Protection = protect_optimizer
        self._loss_sum, self._model = loss_sum, model
        self._backward = backward or torch.Tensor.backward
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._device = self._parameters[0].device if self._parameters else torch.device("cpu")
        self._knobs = list(knobs)
        self._turned: list[str] = []
        self._on_change = on_change
        self._meter = meter if meter is not None else meter_for(self._device)
        self._governor = Governor(budget or Budget())
        self._buffers = Buffers(model)
        self._ranks = Ranks(model, self._device)
        self._steps = 0
        self._largest_good_tokens = 0
        self.measured_peak_bytes = 0
        """Most bytes held by live tensors in any measured pass; 0 where memory cannot be measured."""

    @property
    def budget(self) -> Budget:
        """In force for the next step."""
        return self._governor.budget

    def run(self, items: StepItems) -> StepResult:
        """Loss and gradient of the step, added to what ``.grad`` holds, as ``backward`` does.

        Raises ``DoesNotFit`` (FT301) when one window alone does not fit and no knob is left; gradients, buffers and
        random generators are then as before the call. Any other error of ``loss_sum`` passes through.
        """
        lengths = items.lengths
        total_weight = self._agree_on_step(float(items.total_weight))
        before = Random(self._device)
        gradients = Gradients(self._parameters)
        retries = 0
        try:
            while True:
                pieces = split(lengths, self._governor.budget)
                attempt = self._attempt(items, pieces, total_weight)
                if self._verdict(attempt):
                    break
                retries += 1
                gradients.drop()
                release(self._device)
                self._buffers.restore()
                before.restore()
                self._adapt(attempt, retries)
        except BaseException:
            gradients.drop()
            self._buffers.restore()
            before.restore()
            raise
        finally:
            gradients.put_back()
        assert attempt.loss is not None
        self._steps += 1
        self._governor.step_done()
        self._largest_good_tokens = max(self._largest_good_tokens, *(piece.longest_tokens for piece in pieces))
        padded = sum(piece.padded_tokens for piece in pieces)
        return StepResult(attempt.loss, total_weight, len(pieces), int(sum(lengths)), padded, retries)

    def state(self) -> dict[str, Any]:
        """Budget and turned knobs as plain JSON, for a checkpoint."""
        return {**self._governor.state(), "knobs": list(self._turned)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on as a checkpoint left off; its knobs are turned again."""
        self._governor.load_state(state)
        for knob in self._knobs:
            if knob.name in state["knobs"] and knob.name not in self._turned and knob.turn():
                self._turned.append(knob.name)

    def rehearse(self, items: StepItems) -> int:
        """Run the step and undo it: finds before step 1 whether the heaviest windows of the data fit.

        Leaves the budget as it then is; gradients, buffers and random generators as they were. Returns the retries.
        """
        before, gradients = Random(self._device), Gradients(self._parameters)
        try:
            return self.run(items).retries
        finally:
            gradients.drop()
            gradients.put_back()
            self._buffers.restore()
            before.restore()

    def prepare_optimizer(self, optimizer: Optimizer) -> bool:
        """Allocate the optimizer's state now, before the first step; False when that is not known for its class."""
        return retried(lambda: prepare_optimizer(optimizer), self._device)

    def clip(self, max_norm: float) -> Tensor:
        """Clip the gradients to ``max_norm`` (0: no limit); their norm before, a 0-dim tensor on the device."""
        return retried(lambda: clip_gradients(self._parameters, max_norm), self._device)

    def apply(self, optimizer: Optimizer, step: Callable[[], object] | None = None) -> None:
        """``optimizer.step()`` (or ``step()``: a scaler's), whole or not at all; see ``apply_optimizer``."""
        apply_optimizer(optimizer, step, protect=self._protect, meter=self._meter)

    def _tell(self, change: Change) -> None:
        if self._on_change:
            self._on_change(change)

    def _agree_on_step(self, weight: float) -> float:
        """The total weight over all ranks; the budget grows when all of them want it to."""
        wish = self._governor.wants_to_grow(self._meter)
        rows = self._ranks.gather([weight, float(wish)])
        total = sum(row[0] for row in rows)
        if not total > 0:
            raise ValueError(f"the total weight of a step must be positive, not {total}")
        if all(row[1] for row in rows):
            self._tell(self._governor.grow())
        return total

    def _attempt(self, items: StepItems, pieces: list[MicroBatch], total_weight: float) -> _Attempt:
        """All passes of the step, or how they ended. What the passes held is free when this returns."""
        attempt = _Attempt()
        try:
            self._buffers.keep()
            with self._ranks.quiet():
                for number, piece in enumerate(pieces):
                    attempt.failed = piece
                    self._pass(items, attempt, total_weight, measured=number == 0 and self._measures())
        except Exception as error:  # noqa: BLE001 - sorted below: out-of-memory is survived, all else is raised by run
            attempt.failure = out_of_memory(error)
            if attempt.failure is None:
                attempt.error = error
            else:
                forget(error)
        if attempt.failure or attempt.error:
            attempt.loss = None
        return attempt

    def _pass(self, items: StepItems, attempt: _Attempt, total_weight: float, *, measured: bool) -> None:
        assert attempt.failed is not None
        held = 0
        if measured and self._meter:
            self._meter.reset_peak()
            held = self._meter.allocated_bytes()
        attempt.in_backward = False
        loss = self._loss_sum(items.collate(attempt.failed.indices)) / total_weight
        attempt.in_backward = True
        self._backward(loss)
        attempt.loss = loss.detach() if attempt.loss is None else attempt.loss + loss.detach()
        if measured and self._meter:
            peak = self._meter.peak_bytes()
            self.measured_peak_bytes = max(self.measured_peak_bytes, peak)
            self._governor.learn(peak - held, attempt.failed.padded_tokens)

    def _measures(self) -> bool:
        if self._meter is None:
            return False
        return self._governor.quiet_steps < _MEASURED_STEPS or self._steps % _MEASURE_EVERY == 0

    def _verdict(self, attempt: _Attempt) -> bool:
        """Whether all ranks have their gradients (they are summed then); raises when a rank met another error."""
        state = 2.0 if attempt.error else 1.0 if attempt.failure else 0.0
        held = [float(p.grad is not None) for p in self._parameters] if self._ranks.count > 1 else []
        rows = self._ranks.gather([state, *held])
        if attempt.error:
            raise attempt.error
        for rank, row in enumerate(rows):
            if row[0] == 2.0:
                raise RuntimeError(_("rank {rank} stopped with an error of its own; see its output", rank=rank))
        if any(row[0] for row in rows):
            return False
        if self._ranks.count > 1:
            for number, parameter in enumerate(self._parameters):
                if parameter.grad is None and any(row[1 + number] for row in rows):
                    parameter.grad = retried(lambda parameter=parameter: torch.zeros_like(parameter), self._device)
            assert attempt.loss is not None
            self._ranks.add_up([attempt.loss, *(p.grad for p in self._parameters if p.grad is not None)])
        return True

    def _adapt(self, attempt: _Attempt, retries: int) -> None:
        """A smaller budget, or the next knob; the same on all ranks."""
        failure, failed, governor = attempt.failure, attempt.failed, self._governor
        wanted = -1.0  # This rank has no trouble.
        if failure and failed:
            alone = len(failed.indices) == 1
            if retries == 1 and (alone or failure.family in ("cublas", "cudnn")):
                # The cache held everything, or memory was short for a moment; what was held is given back by now.
                wanted = 0.0
            else:
                room = self._meter.available_bytes() if self._meter else None
                wanted = float(governor.smaller(failed, failure, room, attempt.in_backward) or -2.0)
        rows = self._ranks.gather([wanted, float(failed.padded_tokens if failed and failure else 0)])
        if any(row[0] == -2.0 for row in rows):
            self._turn_a_knob(failure, failed)
            return
        budgets = [int(row[0]) for row in rows if row[0] > 0]
        if budgets:
            tokens, before = min(budgets), governor.tokens
            governor.shrink_to(tokens, int(max(row[1] for row in rows)))
            reason = "out_of_memory" if failure else "another_rank"
            self._tell(Change(before, tokens, reason, failure=failure))

    def _turn_a_knob(self, failure: OutOfMemory | None, failed: MicroBatch | None) -> None:
        tokens = self._governor.tokens
        for knob in self._knobs:
            if knob.name not in self._turned and knob.turn():
                self._turned.append(knob.name)
                self._tell(Change(tokens, tokens, "knob", knob.name, failure))
                return
        if failure is None or failed is None:
            raise RuntimeError(_("another rank ran out of memory with a single window; see its output"))
        raise window_does_not_fit(failed.longest_tokens, self._largest_good_tokens, failure, self._turned)
