"""What of a Trainer's step lies outside the Stepper and must survive out-of-memory too: clipping, the optimizer."""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import TrainerCallback

from fitune.hf.compiling import stop_compiling
from fitune.microbatch import apply_optimizer, clip_gradients, meter_for, prepare_optimizer, retried


class Guard(TrainerCallback):
    """State is allocated before the first step; clipping and stepping survive out-of-memory, whole or not at all."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, **_rest: Any) -> None:
        inner = getattr(optimizer, "optimizer", optimizer)
        if inner is None or getattr(inner, "_fitune_guarded", False):
            return
        device, accelerator = args.device, self._trainer.accelerator
        retried(lambda: prepare_optimizer(inner), device)
        plain_step, plain_clip, meter = inner.step, accelerator.clip_grad_norm_, meter_for(device)

        def step(closure: Any = None) -> None:
            apply_optimizer(inner, (lambda: plain_step(closure)) if closure else plain_step, meter=meter)

        def clip(parameters: Any, max_norm: float, norm_type: float = 2) -> Any:
            if norm_type != 2 or accelerator.scaler is not None or args.world_size > 1:
                return plain_clip(parameters, max_norm, norm_type)
            listed = list(parameters)
            return retried(lambda: clip_gradients(listed, max_norm), device)

        inner.step, inner._fitune_guarded = step, True
        accelerator.clip_grad_norm_ = clip


class Compilation:
    """The exact knob of a compiled model: without it, whose memory is what the simulator knows."""

    name = "compile"

    def __init__(self, model: nn.Module) -> None:
        self._model = model

    def turn(self) -> bool:
        return stop_compiling(self._model)


class Checkpointing:
    """The exact knob for a window that does not fit alone: recompute activations in the backward pass."""

    name = "checkpoint_every"

    def __init__(self, model: nn.Module) -> None:
        self._model = model

    def turn(self) -> bool:
        for module in self._model.modules():
            if getattr(module, "supports_gradient_checkpointing", False):
                if module.is_gradient_checkpointing:
                    return False
                module.gradient_checkpointing_enable(  # pyright: ignore[reportCallIssue]
                    gradient_checkpointing_kwargs={"use_reentrant": False}
                )
                return True
        return False


class FusedAttention:
    """The exact knob for a model that was loaded with the plain kernel: scores of all pairs are never stored."""

    name = "attention"

    def __init__(self, model: nn.Module) -> None:
        self._model = model

    def turn(self) -> bool:
        for module in self._model.modules():
            config = getattr(module, "config", None)
            if getattr(module, "_supports_sdpa", False) and getattr(config, "_attn_implementation", "") == "eager":
                module.set_attn_implementation("sdpa")  # pyright: ignore[reportCallIssue]
                return True
        return False
