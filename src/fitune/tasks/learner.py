"""A Hugging Face model together with its loss, as a sum: what the Stepper can cut without changing what is learned.

Legend: B windows, L tokens, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fitune.hf import IGNORED, LAYOUT, Packing, compiled_forward, with_ready_mask
from fitune.tasks.crf import LinearChainCrf

_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class Learner(nn.Module):
    """``model`` with a head, its loss summed over labelled tokens (NER) or shares of examples (classification).

    Args:
        model: a Hugging Face model for token or sequence classification.
        crf: a ``LinearChainCrf`` over the model's labels; None: softmax.
        multi_label: every class is a yes/no question of its own.
        class_weights: weight of each class, shape (C,), in the loss and in a step's total weight; None: 1.
        label_smoothing: share of the target probability that is spread over all classes.
        precision: autocast precision of the forward pass; the loss itself is always fp32.
        new_weights: names of the model's parameters that start at random: they learn at the head's rate.
    """

    class_weights: Tensor | None

    def __init__(
        self,
        model: nn.Module,
        *,
        crf: LinearChainCrf | None = None,
        multi_label: bool = False,
        class_weights: Tensor | None = None,
        label_smoothing: float = 0.0,
        precision: str = "fp32",
        new_weights: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.model, self.crf, self.multi_label = model, crf, multi_label
        self.label_smoothing, self.precision, self.new_weights = label_smoothing, precision, new_weights
        self.packing: Packing | None = None
        """Set while the model runs without padding; batches come padded all the same, or through ``pack``."""
        self.compiled: Callable[..., Any] | None = None
        """Set while the model trains compiled. A function beside the model, which stays what it is: the same parameter
        names, the same file. Evaluation and packed passes do not use it."""
        self.register_buffer("class_weights", class_weights, persistent=False)

    @property
    def config(self) -> Any:
        """The Hugging Face config, which the Trainer reads."""
        return self.model.config

    def forward(
        self, labels: Tensor | None = None, weights: Tensor | None = None, **inputs: Any
    ) -> tuple[Tensor, Tensor]:
        """Summed weighted loss (0-dim, 0 without labels) and logits in fp32, (B, L, C) or (B, C)."""
        with self._autocast(inputs["input_ids"].device.type):
            logits = self._logits(inputs)
        logits = logits.float()
        if labels is None:
            return logits.new_zeros(()), logits
        return self.window_losses(logits, labels, weights).sum(), logits

    def pack(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A padded batch as the model takes it. On the host, before it goes to a device: nothing is waited for."""
        if self.packing is not None:
            return self.packing.pack(batch)
        if self.compiled is not None:
            return batch  # A compiled model does not look into its mask, and one shape of it is one graph.
        return with_ready_mask(self.model, batch, next(self.parameters()).device)

    def _logits(self, inputs: dict[str, Any]) -> Tensor:
        if self.packing is None:
            run = self.compiled if self.compiled is not None and self.training else self.model
            return run(**inputs).logits
        return self.packing.logits(inputs if LAYOUT in inputs else self.packing.pack(inputs))

    def run_packed(self) -> None:
        """From now on the model runs without padding.

        Raises:
            CannotPack: this model does not; nothing has changed.
        """
        self.packing = self.packing or Packing(self.model)

    def run_padded(self) -> None:
        """From now on batches are padded."""
        if self.packing is not None:
            self.packing.take_off()
            self.packing = None

    def run_compiled(self) -> None:
        """From now on the model trains compiled, wherever it is not packed. Nothing is compiled before the first pass;
        what goes wrong then raises whatever the compiler raises."""
        self.compiled = compiled_forward(self.model)

    def run_uncompiled(self) -> None:
        """From now on the model trains as it is."""
        self.compiled = None

    def window_losses(self, logits: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """(B,): each window's part of the summed loss. ``weights`` (B,) are its shares of its example, None for NER."""
        if logits.dim() == 2:
            assert weights is not None
            return self._example_losses(logits, labels) * weights
        if self.crf is not None:
            return self.crf.negative_log_likelihood(logits, labels)
        losses = functional.cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            weight=self.class_weights,
            ignore_index=IGNORED,
            reduction="none",
            label_smoothing=self.label_smoothing,
        )
        return losses.view(labels.shape).sum(1)

    def _example_losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """(B,): a window's loss, before its share of the example is taken."""
        if not self.multi_label:
            return functional.cross_entropy(
                logits, labels, weight=self.class_weights, reduction="none", label_smoothing=self.label_smoothing
            )
        targets = labels * (1 - self.label_smoothing) + self.label_smoothing / 2
        losses = functional.binary_cross_entropy_with_logits(
            logits, targets, weight=self.class_weights, reduction="none"
        )
        return losses.mean(-1)

    @contextmanager
    def _autocast(self, device_type: str) -> Generator[None, None, None]:
        dtype = _DTYPES.get(self.precision)
        with torch.autocast(device_type, dtype=dtype, enabled=dtype is not None):
            yield
