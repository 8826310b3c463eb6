"""An optimizer step that is applied whole or not at all, and clipping, under out-of-memory.

State is allocated before the first step. A fused Adam(W) then allocates nothing more: it cannot fail. Every other
optimizer makes temporaries between its in-place changes; a failure there leaves half a step, which cannot be computed
back. For those, parameters and state are copied to the host first, unless the room is measured to be ample.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from fitune.messages import _
from fitune.microbatch.knobs import optimizer_does_not_fit
from fitune.microbatch.meter import Meter
from fitune.microbatch.oom import OutOfMemory, release
from fitune.microbatch.surviving import attempted, retried

Protection = Literal["auto", "always", "never"]


def prepare_optimizer(optimizer: Optimizer) -> bool:
    """Allocate the state of every trained parameter now, with the values that the first step would start from.

    True when nothing is left to allocate; False for optimizers whose state is not known here.
    """
    optimizer = unwrapped(optimizer)
    # Subclasses may keep other state.
    if type(optimizer) in (Adam, AdamW):
        fill: Callable[[Optimizer, dict[str, Any], Tensor], None] = _fill_adam
    elif type(optimizer) is SGD and all(group["dampening"] == 0 for group in optimizer.param_groups):
        fill = _fill_sgd
    else:
        return False
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.requires_grad and not optimizer.state[parameter]:
                fill(optimizer, group, parameter)
    return True


def unwrapped(optimizer: Any) -> Optimizer:
    """The torch optimizer inside a wrapper that keeps it as ``.optimizer`` (accelerate's does)."""
    while not isinstance(getattr(optimizer, "param_groups", None), list) or isinstance(
        getattr(optimizer, "optimizer", None), Optimizer
    ):
        optimizer = optimizer.optimizer
    return optimizer


def _fill_adam(optimizer: Optimizer, group: dict[str, Any], parameter: Tensor) -> None:
    # As torch.optim's Adam._init_group: a fused or capturable step counts on the device, the others on the CPU.
    on_device = group.get("fused") or group.get("capturable")
    wide = torch.get_default_dtype() == torch.float64 and not group.get("fused")
    state: dict[str, Tensor] = {
        "step": torch.zeros(
            (), dtype=torch.float64 if wide else torch.float32, device=parameter.device if on_device else "cpu"
        ),
        "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
        "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
    }
    if group["amsgrad"]:
        state["max_exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
    optimizer.state[parameter].update(state)


def _fill_sgd(optimizer: Optimizer, group: dict[str, Any], parameter: Tensor) -> None:
    if group["momentum"]:
        optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)


def allocation_free(optimizer: Optimizer) -> bool:
    """Whether a step allocates nothing: a fused Adam(W) whose state is all there."""
    return type(optimizer) in (Adam, AdamW) and all(
        group.get("fused") and all(optimizer.state[p] for p in group["params"] if p.grad is not None)
        for group in optimizer.param_groups
    )


class _Undo:
    """Parameters, optimizer state and group settings as they are now, on the host."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._groups = [
            {k: copy.copy(v) for k, v in group.items() if k != "params"} for group in optimizer.param_groups
        ]
        self._parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        # ``.to("cpu")`` of a tensor that is on the CPU is no copy.
        self._values = [(_host(p), _host(p.grad)) for p in self._parameters]
        self._states = [{k: _host(v) for k, v in self._state_of(p).items()} for p in self._parameters]
        self._tensors = [dict(self._state_of(p)) for p in self._parameters]

    def _state_of(self, parameter: Tensor) -> dict[str, Any]:
        return optimizer_state(self._optimizer).get(parameter) or {}

    def restore(self) -> None:
        with torch.no_grad():
            for group, before in zip(self._optimizer.param_groups, self._groups, strict=True):
                group.update(before)
            for number, parameter in enumerate(self._parameters):
                value, gradient = self._values[number]
                parameter.copy_(value)
                assert parameter.grad is not None
                parameter.grad.copy_(gradient)
                state = optimizer_state(self._optimizer)
                state.pop(parameter, None)
                if self._states[number]:
                    state[parameter] = {
                        k: _back(self._tensors[number][k], kept) for k, kept in self._states[number].items()
                    }


def optimizer_state(optimizer: Optimizer) -> dict[Any, dict[str, Any]]:
    """``optimizer.state`` without its habit of making an empty entry for every parameter that is asked for."""
    return optimizer.state  # type: ignore[return-value]


def _host(value: Any) -> Any:
    return value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else copy.deepcopy(value)


def _back(place: Any, kept: Any) -> Any:
    return place.copy_(kept) if isinstance(place, Tensor) else kept


def _touched(optimizer: Optimizer) -> list[int]:
    """Versions of everything a step may write; they rise with every in-place change."""
    tensors: list[Tensor] = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer_state(optimizer).get(parameter) or {}
            tensors += [parameter, *(v for v in state.values() if isinstance(v, Tensor))]
    return [tensor._version for tensor in tensors]  # pyright: ignore[reportPrivateUsage]


def _ample(optimizer: Optimizer, meter: Meter | None) -> bool:
    """Whether the temporaries of any implementation fit twice into what is free."""
    if meter is None:
        return False
    gradient_bytes = sum(
        p.grad.nbytes for group in optimizer.param_groups for p in group["params"] if p.grad is not None
    )
    # Foreach implementations hold one or two temporaries of every parameter at once.
    return meter.available_bytes() > 4 * gradient_bytes


def apply_optimizer(
    optimizer: Optimizer,
    step: Callable[[], object] | None = None,
    *,
    protect: Protection = "auto",
    meter: Meter | None = None,
) -> None:
    """``optimizer.step()``, whole or not at all. ``step``: what to call instead (a scaler's step).

    On out-of-memory everything is put back, the cache is given back and the step runs again, the second time without
    foreach temporaries. Raises ``DoesNotFit`` (FT302) when that does not fit either; nothing is changed then.
    ``protect``: ``auto`` copies to the host first when a step can fail (on a device with little room left).
    """
    step = step or optimizer.step
    inner = unwrapped(optimizer)
    device = next((p.device for group in inner.param_groups for p in group["params"]), torch.device("cpu"))
    protected = protect != "never" and not allocation_free(inner)
    if protect == "auto" and (device.type == "cpu" or _ample(inner, meter)):
        protected = False
    undo = retried(lambda: _Undo(inner), device) if protected else None
    versions = _touched(inner)
    failure: OutOfMemory | None = None
    for attempt in range(3):
        failure, _nothing = attempted(step)
        if failure is None:
            return
        release(device)
        if undo is not None:
            undo.restore()
        elif _touched(inner) != versions:
            raise RuntimeError(_("out of memory in the middle of an optimizer step; go on from the last checkpoint"))
        if attempt == 1:
            for group in inner.param_groups:
                if group.get("foreach", False) is None or group.get("foreach"):
                    group["foreach"] = False
    assert failure is not None
    raise optimizer_does_not_fit(failure)


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> Tensor:
    """Scale the gradients to ``max_norm`` (2-norm over all; 0: no limit) and return the norm before, a 0-dim tensor.

    Everything is allocated before the first gradient is scaled, so that a failure leaves none of them scaled.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.zeros(())
    norm = torch.nn.utils.get_total_norm(gradients)
    if max_norm > 0:
        factor = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
        factors = {device: factor.to(device) for device in {gradient.device for gradient in gradients}}
        for device, scale in factors.items():
            same_device = [gradient for gradient in gradients if gradient.device == device]
            torch._foreach_mul_(same_device, scale)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
    return norm
