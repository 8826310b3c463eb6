"""What a step changes, kept so that a failed attempt leaves no trace: random generators, buffers, old gradients."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch
from torch import Tensor, nn


class Random:
    """The states of every random generator that a pass may use: Python, NumPy (where loaded), torch, the device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._numpy: Any = sys.modules.get("numpy")
        self._python_state = random.getstate()
        self._numpy_state = self._numpy.random.get_state() if self._numpy else None
        self._torch_state = torch.get_rng_state()
        self._device_state: Tensor | None = None
        if device.type != "cpu" and hasattr(torch.get_device_module(device), "get_rng_state"):
            self._device_state = torch.get_device_module(device).get_rng_state(device)

    def restore(self) -> None:
        """Set every generator back to where it was."""
        random.setstate(self._python_state)
        if self._numpy:
            self._numpy.random.set_state(self._numpy_state)
        torch.set_rng_state(self._torch_state)
        if self._device_state is not None:
            torch.get_device_module(self._device).set_rng_state(self._device_state, self._device)


class Buffers:
    """A copy of a model's buffers (BatchNorm's statistics), in memory taken once: keeping them allocates nothing."""

    def __init__(self, model: nn.Module) -> None:
        self._places = [
            (module, name)
            for module in model.modules()
            for name, buffer in module._buffers.items()  # pyright: ignore[reportPrivateUsage]
            if buffer is not None
        ]
        self._tensors: list[Tensor] = []
        self._copies: list[Tensor] = []

    def _now(self) -> list[Tensor]:
        return [module.get_buffer(name) for module, name in self._places]

    def keep(self) -> None:
        """Remember the buffers as they are."""
        self._tensors = []
        tensors = self._now()
        if [(t.shape, t.dtype, t.device) for t in tensors] != [(t.shape, t.dtype, t.device) for t in self._copies]:
            self._copies = [torch.empty_like(t) for t in tensors]
        with torch.no_grad():
            for copy, tensor in zip(self._copies, tensors, strict=True):
                copy.copy_(tensor)
        self._tensors = tensors

    def restore(self) -> None:
        """Set the buffers back, in place; a buffer that was replaced is put back as well."""
        with torch.no_grad():
            # Empty when ``keep`` itself did not fit; nothing has run then.
            for (module, name), tensor, copy in zip(self._places, self._tensors, self._copies, strict=False):
                module._buffers[name] = tensor  # pyright: ignore[reportPrivateUsage]
                tensor.copy_(copy)


class Gradients:
    """Sets gradients aside that were there before the step, so that an attempt starts from none and can be dropped.

    After ``zero_grad(set_to_none=True)``, the default, there are none and this costs nothing.
    """

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self._parameters = parameters
        self._aside = [(p, p.grad) for p in parameters if p.grad is not None]
        self.drop()

    def drop(self) -> None:
        """Forget what an attempt has accumulated."""
        for parameter in self._parameters:
            parameter.grad = None

    def put_back(self) -> None:
        """Add what was set aside to the attempt's gradient, in the memory of the former."""
        with torch.no_grad():
            for parameter, before in self._aside:
                if parameter.grad is not None:
                    before.add_(parameter.grad)
                parameter.grad = before
        self._aside = []
