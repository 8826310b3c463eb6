"""Padding-free passes through a Hugging Face model, without forking it.

The windows of a micro-batch are laid end to end as one row of T tokens. Everything in an encoder but its attention
works token by token and does not notice; position ids restart with every window, attention is done window by window
(see ``layout``), and a classifier's head is given the first token of each. Two ways lead the attention here:

* **interface**: a function registered in transformers' ``AttentionInterface`` and not in ``AttentionMaskInterface``, so
  that no mask is built and keyword arguments of the model's call reach the function (BERT from transformers 5.0 on).
* **torch**: a ``TorchFunctionMode`` that takes the place of ``scaled_dot_product_attention`` during the call, where
  the model's attention does not go through the interface (BERT in transformers 4.57).

Before a model is used this way it has to prove, on itself, that its logits are those of its windows one at a time.

Legend: B windows of a micro-batch, L its longest, T its tokens without padding, H heads, D head size, C classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from fitune.hf.dropout import has_quick_dropout
from fitune.hf.layout import Layout
from fitune.hf.models import _ROOM_BEFORE_POSITIONS  # pyright: ignore[reportPrivateUsage]
from fitune.messages import _

NAME = "fitune_packed"
"""Of the attention function in transformers' AttentionInterface."""

LAYOUT = "packed_layout"
"""Keyword argument under which a pack's Layout travels through the model to its attention."""

PROOF_LENGTHS = (7, 3, 12, 7)
"""Windows on which a model proves its packed logits; two of equal length, none in order."""
PROOF_TOLERANCE = 1e-4
"""Largest difference of logits that passes as rounding, in units of the largest logit."""


class CannotPack(Exception):
    """This model cannot be fed without padding; the text says why."""


class Packing:
    """A model that runs packed from now on. ``take_off`` gives it back as it was.

    Args:
        model: a Hugging Face model with a token or sequence classification head, loaded with "sdpa" attention.

    Raises:
        CannotPack: its packed logits are not those of its windows alone.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._layout: Layout | None = None
        self._hooks: list[Any] = []
        self._before = str(model.config._attn_implementation)
        config = model.config
        room = config.model_type in _ROOM_BEFORE_POSITIONS
        self._first_position = int(config.pad_token_id or 0) + 1 if room else 0
        self._quick_dropout = has_quick_dropout(model)
        self._takes_segments = "token_type_ids" in inspect.signature(model.forward).parameters
        self.way = "interface" if _uses_interface(model) else "torch"
        if self.way == "torch" and getattr(model, "is_gradient_checkpointing", False):
            # The mode is not there when a checkpointed layer runs again in the backward pass.
            raise CannotPack(_("activation checkpointing needs transformers 5 to run without padding"))
        expected = _alone(model)
        self._put_on()
        try:
            self._prove(expected)
        except BaseException:
            self.take_off()
            raise

    def _put_on(self) -> None:
        if self.way == "interface":
            _register()
            self._model.set_attn_implementation(NAME)
        if "SequenceClassification" in type(self._model).__name__:
            for name, module in self._model.named_modules():
                if name.rpartition(".")[2] in ("pooler", "classifier"):
                    self._hooks.append(module.register_forward_pre_hook(self._give_first_tokens))

    def take_off(self) -> None:
        """The model as it was before."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        if self.way == "interface":
            self._model.set_attn_implementation(self._before)

    # -- a micro-batch ------------------------------------------------------------------------------------------

    def pack(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """A padded batch (``input_ids``, ``attention_mask``, ``token_type_ids`` as (B, L)) end to end, (1, T).

        Everything else stays. Do it before the batch goes to a device: lengths are read here.
        """
        packed = dict(batch)
        if self.way == "torch" and getattr(self._model, "is_gradient_checkpointing", False):
            return packed  # Turned on since, because memory was short: padded from now on.
        mask = packed.pop("attention_mask").bool()
        layout = Layout(mask, self._first_position, quick_dropout=self._quick_dropout)
        for name in ("input_ids", "token_type_ids"):
            if name in packed:
                packed[name] = layout.pack(packed[name])
        if self._takes_segments and "token_type_ids" not in packed:
            # transformers 4.57 would take them from a buffer as long as the longest input, and a pack is longer.
            packed["token_type_ids"] = torch.zeros_like(packed["input_ids"])
        packed["position_ids"] = layout.position_ids(mask.device)
        packed[LAYOUT] = layout
        return packed

    def logits(self, inputs: dict[str, Any]) -> Tensor:
        """Logits of a batch from ``pack``, back in rows: (B, L, C), 0 in padding; or (B, C)."""
        if LAYOUT not in inputs:
            return self._model(**inputs).logits
        layout: Layout = inputs[LAYOUT]
        self._layout = layout
        try:
            if self.way == "interface":
                logits = self._model(**inputs).logits
            else:
                rest = {name: value for name, value in inputs.items() if name != LAYOUT}
                with _Divert(layout):
                    logits = self._model(**rest).logits
        finally:
            self._layout = None
        return layout.unpack_rows(logits) if logits.dim() == 2 else layout.unpack(logits)

    def _give_first_tokens(self, _module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Before a pooler or a head that reads the first token: every window's first token, as (B, 1, hidden)."""
        if self._layout is None or not arguments or arguments[0].dim() != 3:
            return None
        return (self._layout.first_tokens(arguments[0]), *arguments[1:])

    # -- proof --------------------------------------------------------------------------------------------------

    def _prove(self, expected: list[Tensor]) -> None:
        batch = _proof_batch(self._model)
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                found = self.logits(self.pack(batch))
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, KeyError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CannotPack(_("the model does not run without padding: {reason}", reason=reason)) from error
        finally:
            self._model.train(was_training)
        largest = max(float(logits.abs().max()) for logits in expected)
        for row, (alone, length) in enumerate(zip(expected, PROOF_LENGTHS, strict=True)):
            here = found[row, :length] if found.dim() == 3 else found[row]
            difference = float((here - alone).abs().max()) if here.shape == alone.shape else float("inf")
            if not difference <= PROOF_TOLERANCE * largest:
                raise CannotPack(_("its logits without padding differ from those of a text alone"))


def _uses_interface(model: Any) -> bool:
    return bool(getattr(model, "_supports_attention_backend", False)) and hasattr(model, "set_attn_implementation")


def _register() -> None:
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, packed_attention)


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **rest: Any,
) -> tuple[Tensor, None]:
    """Attention of a pack: (1, H, T, D) each -> (1, T, H, D), every token over its own window."""
    layout: Layout | None = rest.get(LAYOUT)
    if layout is None or attention_mask is not None:
        raise RuntimeError("a model that is set to run packed was called without a packed batch")
    return layout.attend(query, key, value, dropout=dropout, scale=scaling).transpose(1, 2), None


class _Divert(TorchFunctionMode):
    """Takes the place of ``scaled_dot_product_attention`` over a whole pack."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout = layout

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not functional.scaled_dot_product_attention:
            return func(*args, **kwargs)
        query, key, value = args[:3]
        if kwargs.get("attn_mask") is not None or kwargs.get("is_causal"):
            raise RuntimeError("attention with a mask of the model's own cannot run packed")
        return self._layout.attend(query, key, value, dropout=kwargs.get("dropout_p", 0.0), scale=kwargs.get("scale"))


# -- the reference that a model has to meet ---------------------------------------------------------------------


def _proof_batch(model: Any) -> dict[str, Tensor]:
    device = next(model.parameters()).device
    longest, size = max(PROOF_LENGTHS), model.get_input_embeddings().num_embeddings
    lengths = torch.tensor(PROOF_LENGTHS).unsqueeze(1)
    mask = torch.arange(longest) < lengths
    padding = int(model.config.pad_token_id or 0)
    # Spread over the vocabulary without a random generator, whose state belongs to the training.
    ids = (torch.arange(mask.numel()).view(mask.shape) * 7919 + 11) % size
    ids = torch.where(ids == padding, (padding + 1) % size, ids)
    return {
        "input_ids": torch.where(mask, ids, padding).to(device),
        "attention_mask": mask.long().to(device),
    }


def _alone(model: Any) -> list[Tensor]:
    """Logits of the proof's windows, each passed alone through the model as it is."""
    batch = _proof_batch(model)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            return [
                model(input_ids=batch["input_ids"][row : row + 1, :length]).logits[0]
                for row, length in enumerate(PROOF_LENGTHS)
            ]
    finally:
        model.train(was_training)
