"""Optimizers by the name that Fit gives them, laid out in memory as their CUDA implementations lay them out."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

BLOCK_VALUES = 256
"""Values that share one scale in bitsandbytes' block-wise states (2,048 before 0.45)."""
SMALLEST_8BIT = 4096
"""bitsandbytes keeps smaller parameters' states in fp32."""


class AdamW8bit(torch.optim.Optimizer):
    """The memory of bitsandbytes' block-wise 8-bit AdamW: two bytes a parameter and two fp32 scales per block, no
    temporaries. It moves no parameter: for simulation only.

    ``in_fp32``: parameters whose state stays fp32; the Hugging Face Trainer does that with embeddings.
    """

    def __init__(
        self,
        parameters: Iterable[torch.Tensor],
        *,
        in_fp32: Iterable[torch.Tensor] = (),
        block_values: int = BLOCK_VALUES,
    ) -> None:
        self._in_fp32 = {id(p) for p in in_fp32}
        self._block_values = block_values
        self._maps: list[torch.Tensor] = []
        super().__init__(parameters, {})

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None and not self.state[parameter]:
                        self.state[parameter] = self._state(parameter)

    def _state(self, parameter: torch.Tensor) -> dict[str, Any]:
        if parameter.numel() < SMALLEST_8BIT or id(parameter) in self._in_fp32:
            zeros = [torch.zeros_like(parameter, dtype=torch.float32) for _ in range(2)]
            return {"state1": zeros[0], "state2": zeros[1]}
        if not self._maps:
            self._maps = [torch.empty(256, device=parameter.device) for _ in range(2)]
        blocks = -(-parameter.numel() // self._block_values)
        return {
            "state1": torch.zeros_like(parameter, dtype=torch.uint8),
            "state2": torch.zeros_like(parameter, dtype=torch.uint8),
            "absmax1": torch.zeros(blocks, device=parameter.device),
            "absmax2": torch.zeros(blocks, device=parameter.device),
        }


def optimizer_for(name: str, model: torch.nn.Module, learning_rate: float = 1e-5) -> torch.optim.Optimizer:
    """``adamw_fused``, ``adamw_foreach``, ``adamw_loop``, ``adamw_8bit``, ``adafactor`` or ``sgd`` for what is trained.

    Raises ValueError for another name.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    match name:
        case "adamw_fused":
            return torch.optim.AdamW(trained, lr=learning_rate, fused=True)
        case "adamw_foreach":
            return torch.optim.AdamW(trained, lr=learning_rate, foreach=True)
        case "adamw_loop":
            return torch.optim.AdamW(trained, lr=learning_rate, foreach=False)
        case "adamw_8bit":
            return AdamW8bit(trained)
        case "adafactor":
            return torch.optim.Adafactor(trained, lr=learning_rate)
        case "sgd":
            return torch.optim.SGD(trained, lr=learning_rate, foreach=True)
        case _:
            raise ValueError(f"unknown optimizer {name!r}")
