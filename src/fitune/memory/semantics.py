"""What changes memory besides the model and its input: card, PyTorch version, padding. An input of every simulation."""

from dataclasses import dataclass, field

import torch


def version_of(text: str) -> tuple[int, int]:
    """``"2.13.0+cpu"`` -> (2, 13)."""
    major, minor = text.split("+")[0].split(".")[:2]
    return int(major), int("".join(c for c in minor if c.isdigit()))


@dataclass(frozen=True)
class Semantics:
    """Whose rules apply. The defaults are today's: this PyTorch, an Ampere card, batches with padding."""

    torch_version: tuple[int, int] = field(default_factory=lambda: version_of(torch.__version__))
    """Rules of this PyTorch. 1.10 and earlier: softmax keeps its input for the backward (pytorch/pytorch#65242)."""
    compute_capability: tuple[int, int] = (8, 0)
    """sm version of the card: decides the attention kernel and the size of cuBLAS' workspace."""
    padded: bool = True
    """Whether the batch contains padding: without any, transformers drops the attention mask."""
    read_integer: int | None = None
    """What an integer is that the step reads off a tensor; give the padded length where a CRF asks for its longest row.
    None: such a step is refused with ``DataDependent``."""
    cuda: bool = True
    """False: the CPU's own rules (unfused dropout, its attention kernel), to compare with a ``VirtualCard`` run."""

    @property
    def gradients_dropped(self) -> bool:
        """Default of ``zero_grad(set_to_none=...)``: True since PyTorch 2.0."""
        return self.torch_version >= (2, 0)

    @property
    def softmax_keeps_input(self) -> bool:
        """softmax and log_softmax saved their input as well, although the backward never read it."""
        return self.torch_version < (1, 11)

    @property
    def foreach_clip(self) -> bool:
        """``clip_grad_norm_`` with foreach kernels: since PyTorch 2.0."""
        return self.torch_version >= (2, 0)

    @property
    def workspace_in_allocator(self) -> bool:
        """cuBLAS' workspace comes from PyTorch's allocator since 1.11 (pytorch/pytorch#61447)."""
        return self.torch_version >= (1, 11)


def workspace_bytes(compute_capability: tuple[int, int]) -> int:
    """cuBLAS' workspace per handle and stream: ``:4096:2:16:8``, or 32 MiB on Hopper and data-centre Blackwell.

    Source: pytorch/pytorch ``aten/src/ATen/cuda/CublasHandlePool.cpp``.
    """
    if compute_capability in ((9, 0), (10, 0), (10, 3)):
        return 4096 * 8 * 1024
    return (4096 * 2 + 16 * 8) * 1024


@dataclass(frozen=True)
class Context:
    """Bytes that the CUDA context takes outside the allocator: typical, and the most that was seen."""

    typical_bytes: int
    highest_bytes: int


def context_of(compute_capability: tuple[int, int], *, lazy: bool = True) -> Context:
    """What a process pays before its first tensor.

    Published figures: 274 MB lazy and 636 MB eager (pytorch/pytorch#86509, CUDA 11.8), 287 and 667 MB (CUDA 12),
    1,343 MB eager on a V100 with CUDA 11.2. No table per card exists, so the spread is part of the answer. Kernel
    images grow with the card's generation: Hopper and later are given 500 MB typical, which is an assumption.
    """
    if not lazy:
        return Context(667 << 20, 1343 << 20)
    if compute_capability >= (9, 0):
        return Context(500 << 20, 700 << 20)
    return Context(287 << 20, 500 << 20)
