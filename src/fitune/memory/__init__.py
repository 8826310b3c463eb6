"""Peak memory of any training step without a GPU: predict it (simulate) or enforce it (VirtualCard). Torch only.

``simulate(step, resident=[model])`` runs any optimizer step on meta tensors under CUDA's rules and returns a ``Trace``:
``trace.peak_reserved_bytes`` (add ``context_of(...)`` for the whole card), ``trace.replay(limit_bytes)`` for another
card, ``trace.alive()`` and ``trace.summary()`` for what fills it. ``simulate_training(model, fit, shapes)`` builds the
step for a Hugging Face style model. ``VirtualCard("4GiB")`` makes a real CPU run fail where such a card would.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fitune.memory.allocator import Allocator, DoesNotFit
    from fitune.memory.attention import choose_kernel
    from fitune.memory.rules import DataDependent
    from fitune.memory.semantics import Context, Semantics, context_of, workspace_bytes
    from fitune.memory.simulation import shadow, simulate
    from fitune.memory.trace import Op, Replay, Storage, Trace
    from fitune.memory.training_step import (
        TrainingStep,
        ddp_buckets,
        example_inputs,
        simulate_training,
        token_inputs,
    )
    from fitune.memory.virtual_card import VirtualCard

__all__ = [
    "Allocator",
    "Context",
    "DataDependent",
    "DoesNotFit",
    "Op",
    "Replay",
    "Semantics",
    "Storage",
    "Trace",
    "TrainingStep",
    "VirtualCard",
    "choose_kernel",
    "context_of",
    "ddp_buckets",
    "example_inputs",
    "shadow",
    "simulate",
    "simulate_training",
    "token_inputs",
    "workspace_bytes",
]

_HOMES = {
    "allocator": ("Allocator", "DoesNotFit"),
    "attention": ("choose_kernel",),
    "rules": ("DataDependent",),
    "semantics": ("Context", "Semantics", "context_of", "workspace_bytes"),
    "simulation": ("shadow", "simulate"),
    "trace": ("Op", "Replay", "Storage", "Trace"),
    "training_step": ("TrainingStep", "ddp_buckets", "example_inputs", "simulate_training", "token_inputs"),
    "virtual_card": ("VirtualCard",),
}


def __getattr__(name: str) -> Any:
    """Load torch only when something is used."""
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"fitune.memory.{home}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
