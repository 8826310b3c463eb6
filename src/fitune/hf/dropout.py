"""Dropout on a CPU in a sixth of the time: torch's own draws one number at a time there (7.9 ns an element against 1.2;
one Zen 3 core, torch 2.13), which is 14 % of a small model's step.

Each element is dropped or kept by 16 bits of a SFC64 generator, which numpy keeps the same in all its versions. Every
call seeds one of its own by one number of torch's generator: whoever puts torch's generator back (a resumed run, a step
that is taken again in smaller passes, activation checkpointing) gets the same masks back.

The share that is dropped is p rounded to a 65,536th (0.1 becomes 0.100006); what is kept is scaled by that very share,
so that the mean stays.

On Intel's processors torch draws by MKL, in all its threads (``bernoulli_mkl_kernel``, DistributionKernels.cpp); the
generator here is one thread's, so with more than a few it is left to torch there. On others torch's loop is serial.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 1 << 16
_NUMBERS_A_WORD = 4
_MOST_THREADS_BESIDE_MKL = 2


class HostDropout(nn.Dropout):
    """``nn.Dropout`` that is quick for fp32 on a CPU; anywhere else it is torch's own."""

    def forward(self, input: Tensor) -> Tensor:
        # Numpy would cut a compiled graph in pieces, and a compiled graph draws its dropout quickly by itself.
        if not self.training or torch.compiler.is_compiling() or not is_quick(input, self.p):
            return functional.dropout(input, self.p, self.training)
        return input * KeepScales(self.p).draw(input.numel()).view(input.shape)


class KeepScales:
    """Factors of a dropout with share ``p``: 0 for what is dropped, 1 / (share kept) for the rest.

    One object draws as many as it is asked for from one stream; torch's generator moves once, when it is made.
    """

    def __init__(self, p: float) -> None:
        self._dropped_levels = round(p * _LEVELS)
        seed = int(torch.randint(torch.iinfo(torch.int64).max, ()))
        self._bits = np.random.SFC64(seed)

    def draw(self, count: int) -> Tensor:
        """(count,) fp32."""
        words = self._bits.random_raw(-(-count // _NUMBERS_A_WORD))
        scales = torch.from_numpy(words.view(np.int16)[:count]).to(torch.float32)
        # In place and in floats: a comparison that makes booleans, and their product with floats, are not vectorised.
        scales.ge_(float(self._dropped_levels - _LEVELS // 2))
        return scales.mul_(_LEVELS / (_LEVELS - self._dropped_levels))


def is_quick(tensor: Tensor, p: float) -> bool:
    """Whether KeepScales serve: plain fp32 tensors on a CPU, and a share that 16 bits can tell from 0 and from 1."""
    return (
        type(tensor) in (Tensor, nn.Parameter)
        and tensor.device.type == "cpu"
        and tensor.dtype == torch.float32
        and 0 < round(p * _LEVELS) < _LEVELS
    )


def quicken_dropout(model: nn.Module) -> None:
    """Put HostDropout in the place of every ``nn.Dropout`` of a model that trains on a CPU, unless torch is quick too.

    That depends on the processor and the number of threads alone: a resumed run draws as it began.
    """
    if _is_intel() and torch.backends.mkl.is_available() and torch.get_num_threads() > _MOST_THREADS_BESIDE_MKL:
        return
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Dropout:
                quick = HostDropout(child.p)
                quick.train(child.training)
                setattr(module, name, quick)


def has_quick_dropout(model: nn.Module) -> bool:
    return any(isinstance(module, HostDropout) for module in model.modules())


@lru_cache(maxsize=1)
def _is_intel() -> bool:
    processors = Path("/proc/cpuinfo")
    text = processors.read_text(encoding="utf-8") if processors.is_file() else platform.processor()
    return "GenuineIntel" in text
