"""From the host to the device: the one way that a micro-batch takes.

On a card a copy from ordinary memory keeps the host waiting until it is done; from pinned memory it only takes its
place in the card's queue, and the host goes on collating the next micro-batch while the card works on this one. That is
all the prefetch there is, and it needs no thread, as long as nothing inside a step makes the host wait. What does so,
and what does not (``tests/hf/test_moving.py`` counts the reads):

* packed, padded with a mask that is made ready here, and compiled passes read nothing back;
* a model that looks into a mask of its own (transformers before 5, models with sliding windows) reads once a pass;
* a CRF reads once a pass how many positions its longest row has;
* the loss is read once a step, after its last pass: a step that is not finite must not reach the optimizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fitune.hf.compat import takes_ready_mask


def to_device(inputs: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Every tensor of ``inputs`` on ``device``, the rest as it is; what is there already is not copied."""
    return {name: moved(value, device) if isinstance(value, Tensor) else value for name, value in inputs.items()}


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """``tensor`` on ``device``: to a card from the host through pinned memory, without waiting for it."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def with_ready_mask(model: Any, inputs: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """A padded batch, still on the host, as ``model`` on ``device`` takes it without reading anything back.

    A model looks into a mask (B, L) whether there is padding at all, and on a card the host waits for the answer. Here
    the host knows: the mask is None, or (B, 1, 1, L), True at tokens, as fused attention takes it. On a CPU nothing
    changes.
    """
    mask = inputs.get("attention_mask")
    if device.type != "cuda" or mask is None or mask.dim() != 2 or not takes_ready_mask(model):
        return inputs
    whole = bool(mask.numpy().all())
    return {**inputs, "attention_mask": None if whole else mask.bool()[:, None, None, :]}
