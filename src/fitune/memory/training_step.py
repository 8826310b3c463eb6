"""One optimizer step of a Hugging Face style model with a given Fit, ready for ``simulate``.

The model lives on the meta device (``with torch.device("meta"): AutoModel...from_config(config)``) and arrives with its
LoRA adapters: this room knows torch only.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch

from fitune.memory.optimizers import optimizer_for
from fitune.memory.semantics import Semantics
from fitune.memory.simulation import simulate
from fitune.memory.trace import Trace
from fitune.values import Fit

_torch: Any = torch
_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}

Inputs = dict[str, torch.Tensor]
LossOf = Callable[[torch.nn.Module, Inputs], torch.Tensor]


def token_inputs(batch: int, length: int, *, masked: bool = True) -> Inputs:
    """Token ids, mask and one label per token: each [batch, length], int64, meta."""
    names = ["input_ids", "labels", *(["attention_mask"] if masked else [])]
    return {name: torch.empty(batch, length, dtype=torch.long, device="meta") for name in names}


def example_inputs(batch: int, length: int, *, masked: bool = True) -> Inputs:
    """Like ``token_inputs`` with one label per example: labels [batch]."""
    return {**token_inputs(batch, length, masked=masked), "labels": torch.empty(batch, dtype=torch.long, device="meta")}


def loss_of_output(model: torch.nn.Module, inputs: Inputs) -> torch.Tensor:
    """``model(**inputs).loss``."""
    return model(**inputs).loss


class TrainingStep:
    """Forward, loss, backward (once or twice, see ``micro_batches``), unscale, clip, optimizer, zero_grad.

    ``shapes``: (windows, tokens) of the micro-batches of one step, in order; the same shapes come again in each step
    unless there are more than are run. Call it to run a step.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        fit: Fit,
        shapes: Iterable[tuple[int, int]],
        *,
        inputs: Callable[..., Inputs] = token_inputs,
        loss: LossOf = loss_of_output,
        semantics: Semantics | None = None,
        clip: float | None = 1.0,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        self.model, self.fit, self.shapes = model, fit, tuple(shapes)
        self.semantics = semantics or Semantics()
        self._inputs, self._loss, self._clip = inputs, loss, clip
        apply_fit(model, fit)
        model.train()
        self.optimizer = optimizer or optimizer_for(fit.optimizer, model)
        self._trained = [p for p in model.parameters() if p.requires_grad]
        self._scale = torch.empty((), device="meta") if fit.precision == "fp16" else None

    def __call__(self) -> None:
        for batch, length in self.shapes:
            loss = self._forward(batch, length)
            if self._scale is not None:
                loss = loss * self._scale
            loss.backward()
            del loss
        if self._scale is not None:
            self._unscale(self._scale)
        if self._clip is not None:
            torch.nn.utils.clip_grad_norm_(self._trained, self._clip, foreach=self.semantics.foreach_clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=self.semantics.gradients_dropped)

    def _forward(self, batch: int, length: int) -> torch.Tensor:
        masked = self.fit.attention not in ("flash", "packed")
        inputs = self._inputs(batch, length, masked=masked)
        dtype = _DTYPES.get(self.fit.precision)
        with nullcontext() if dtype is None else torch.autocast("cuda", dtype=dtype):
            return self._loss(self.model, inputs)

    def _unscale(self, scale: torch.Tensor) -> None:
        """``GradScaler.unscale_``: in place, with two scalars."""
        inverse = scale.double().reciprocal().float()
        found = torch.zeros((), device="meta")
        gradients = [p.grad for p in self._trained if p.grad is not None]
        _torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse)


def apply_fit(model: torch.nn.Module, fit: Fit) -> None:
    """Attention kernel, activation checkpointing and frozen layers, by the switches that Hugging Face models have."""
    described: Any = model
    wanted = "eager" if fit.attention == "eager" else "sdpa"
    config = getattr(described, "config", None)
    if getattr(config, "_attn_implementation", wanted) != wanted and hasattr(described, "set_attn_implementation"):
        described.set_attn_implementation(wanted)
    lists = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
    layers: list[Any] = list(max(lists, key=len)) if lists else []
    if fit.checkpoint_every:
        described.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        for index, layer in enumerate(layers):
            if hasattr(layer, "gradient_checkpointing"):
                layer.gradient_checkpointing = index % fit.checkpoint_every == 0
    if fit.frozen_layers:
        base: Any = getattr(model, "base_model", model)
        for module in (getattr(base, "embeddings", None), *layers[: fit.frozen_layers]):
            if module is not None:
                module.requires_grad_(False)


def ddp_buckets(
    model: torch.nn.Module, *, first_bytes: int = 1 << 20, bucket_bytes: int = 25 << 20
) -> list[torch.Tensor]:
    """DistributedDataParallel's gradient buckets (a second copy of all gradients), to pass as ``resident``.

    Parameters are packed in reverse order; a bucket is closed once it has reached its size. Source:
    torch/csrc/distributed/c10d/reducer.cpp.
    """
    buckets, size, limit = list[torch.Tensor](), 0, first_bytes
    for parameter in reversed([p for p in model.parameters() if p.requires_grad]):
        size += parameter.numel() * parameter.element_size()
        if size >= limit:
            buckets.append(torch.empty(size, dtype=torch.uint8, device="meta"))
            size, limit = 0, bucket_bytes
    if size:
        buckets.append(torch.empty(size, dtype=torch.uint8, device="meta"))
    return buckets


def simulate_training(
    model: torch.nn.Module,
    fit: Fit,
    shapes: Iterable[tuple[int, int]],
    *,
    semantics: Semantics | None = None,
    inputs: Callable[..., Inputs] = token_inputs,
    loss: LossOf = loss_of_output,
    clip: float | None = 1.0,
    resident: Iterable[torch.Tensor] = (),
    steps: int = 3,
) -> Trace:
    """Trace of training ``model`` (on meta) with ``fit``; ``shapes``: (windows, tokens) of one step's micro-batches.

    Two micro-batches tell as much as many: the second is the first that finds gradients.
    """
    semantics = semantics or Semantics()
    step = TrainingStep(model, fit, shapes, inputs=inputs, loss=loss, semantics=semantics, clip=clip)
    return simulate(step, resident=[model, *resident], steps=steps, semantics=semantics)
