"""The knobs of a Fit on a Hugging Face model: activation checkpointing, frozen layers, parameter groups, optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from fitune.messages import _
from fitune.values import Fit, Job, Refusal

ATTENTION: dict[str, Any] = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2", "packed": "sdpa"}
"""Fit.attention -> transformers' name."""


def encoder_layers(model: nn.Module) -> list[nn.Module]:
    """The encoder's layers, from the input on: the longest ModuleList there is."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    return list(max(lists, key=len)) if lists else []


def apply_fit(model: Any, fit: Fit) -> None:
    """Checkpointing and freezing as ``fit`` says; the attention kernel is chosen when the model is loaded.

    Raises:
        Refusal: fewer layers than ``frozen_layers``, or a knob that this model does not have.
    """
    layers = encoder_layers(model)
    if fit.checkpoint_every:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        for number, layer in enumerate(layers):
            if hasattr(layer, "gradient_checkpointing"):
                layer.gradient_checkpointing = number % fit.checkpoint_every == 0  # pyright: ignore[reportArgumentType]
    if fit.frozen_layers:
        if fit.frozen_layers > len(layers):
            raise Refusal(
                _(
                    "frozen_layers is {wanted}, but the model has {layers} layers",
                    wanted=fit.frozen_layers,
                    layers=len(layers),
                ),
                where="frozen_layers",
                next_step=_("Choose at most {layers}.", layers=len(layers)),
                code="FT511",
            )
        frozen = [getattr(model.base_model, "embeddings", None), *layers[: fit.frozen_layers]]
        for module in frozen:
            if module is not None:
                module.requires_grad_(False)
    if fit.lora_rank:
        raise Refusal(
            _("LoRA is not available yet"), where="lora_rank", next_step=_("Set lora_rank to 0."), code="FT512"
        )


def parameter_groups(
    model: Any, crf: nn.Module | None, job: Job, new_weights: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Encoder and head, each with and without weight decay: vectors (biases, LayerNorm) and a CRF never decay.

    The head is what lies outside the encoder, what starts at random, and the CRF. ``job`` must have both rates.
    """
    encoder = {id(p) for p in model.base_model.parameters()}
    groups: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            key = (id(parameter) in encoder and name not in new_weights, parameter.dim() > 1)
            groups.setdefault(key, []).append(parameter)
    if crf is not None:
        groups.setdefault((False, False), []).extend(crf.parameters())
    return [
        {
            "params": parameters,
            "lr": job.learning_rate if in_encoder else job.head_learning_rate,
            "weight_decay": job.weight_decay if decays else 0.0,
        }
        for (in_encoder, decays), parameters in sorted(groups.items(), key=lambda item: item[0], reverse=True)
    ]


def make_optimizer(groups: list[dict[str, Any]], name: str) -> torch.optim.Optimizer:
    """The optimizer of a Fit (``Fit.optimizer``) over parameter groups that carry their own rates."""
    lr = groups[0]["lr"]
    if name in ("adamw_fused", "adamw_foreach", "adamw_loop"):
        return torch.optim.AdamW(groups, lr=lr, fused=name == "adamw_fused", foreach=name == "adamw_foreach")
    if name == "sgd":
        return torch.optim.SGD(groups, lr=lr)
    if name == "adafactor":
        return torch.optim.Adafactor(groups, lr=lr)
    try:
        from bitsandbytes.optim import AdamW8bit  # pyright: ignore
    except ImportError:
        raise Refusal(
            _("8-bit AdamW needs the package bitsandbytes, which is not installed"),
            where="optimizer",
            next_step=_("Type: pip install bitsandbytes"),
            code="FT513",
        ) from None
    return AdamW8bit(groups, lr=lr)
