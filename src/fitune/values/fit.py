"""Fit: the memory choices of a run, and what each does to the thing learned."""

from enum import IntEnum
from typing import Literal

from pydantic import Field

from fitune.values.base import Value


class Fidelity(IntEnum):
    """What a knob does to the thing learned. The planner spends the small ones first and asks before DIFFERENT."""

    EXACT = 0
    """The same sums in another order: equal up to floating-point associativity."""
    ROUNDING = 1
    """The same computation in fewer bits."""
    DIFFERENT = 2
    """Something else is learned."""


class Fit(Value):
    """How one optimizer step is laid out in memory. Nothing here is a learning choice unless its Fidelity says so."""

    micro_batch: int | None = Field(default=None, ge=1)
    """Most windows in one forward pass; None: no limit but the token budget."""
    micro_batch_tokens: int | None = Field(default=None, ge=1)
    """Most padded tokens in one forward pass; None: the whole step at once."""
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    """Autocast precision of the forward pass; weights and optimizer state stay fp32."""
    attention: Literal["eager", "sdpa", "flash", "packed"] = "sdpa"
    """Attention kernel."""
    checkpoint_every: int = Field(default=0, ge=0)
    """Activation checkpointing of every k-th layer; 0: none, 1: all."""
    optimizer: Literal["adamw_fused", "adamw_foreach", "adamw_loop", "adamw_8bit", "adafactor", "sgd"] = "adamw_fused"
    """Implementation of the optimizer; the three adamw ones differ in temporaries and speed alone."""
    lora_rank: int = Field(default=0, ge=0)
    """Rank of LoRA adapters on the attention projections; 0: full fine-tuning."""
    frozen_layers: int = Field(default=0, ge=0)
    """Encoder layers, counted from the input, that are not trained."""
    compile: bool = False
    """Try torch.compile on one step of the job, and keep it where that is the fastest way; after the choice: kept."""


FIDELITY: dict[str, Fidelity] = {
    "micro_batch": Fidelity.EXACT,
    "micro_batch_tokens": Fidelity.EXACT,
    "precision": Fidelity.ROUNDING,
    "attention": Fidelity.EXACT,
    "checkpoint_every": Fidelity.EXACT,
    "optimizer": Fidelity.EXACT,  # adamw_8bit is ROUNDING, adafactor and sgd are DIFFERENT: planning refines
    "lora_rank": Fidelity.DIFFERENT,
    "frozen_layers": Fidelity.DIFFERENT,
    "compile": Fidelity.EXACT,
}
"""Field of Fit -> what a change of it does, at the least."""
