"""What CUDA kernels take from the allocator inside themselves and give back: it is in no output, so it is stated here.

Each rule: the op's arguments and output -> sizes in bytes, alive together with the op's outputs. B batch, H heads,
L length, D head dim, N tokens.
"""

from collections.abc import Callable
from typing import Any

import torch


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _efficient_backward(args: tuple[Any, ...]) -> list[int]:
    """Row sums of grad * out in fp32; for fp16 and bf16 also an fp32 accumulator of grad_query.

    Source: aten/src/ATen/native/transformers/cuda/attention_backward.cu and mem_eff_attention/kernel_backward.h.
    """
    query = args[1]
    batch, heads, length, width = query.shape
    sizes = [batch * heads * _up(length, 32) * 4]
    if query.dtype != torch.float32:
        sizes.append(batch * heads * _up(length, 64) * _up(width, 64) * 4)
    return sizes


def _flash_backward(args: tuple[Any, ...]) -> list[int]:
    """Row sums and an accumulator of grad_query in fp32, lengths rounded up to 128.

    Source: aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp.
    """
    query = args[1]
    batch, heads, length, width = query.shape
    rounded = _up(length, 128)
    return [batch * heads * rounded * 4, batch * heads * rounded * _up(width, 32 if width <= 128 else 64) * 4]


def _embedding_backward(args: tuple[Any, ...]) -> list[int]:
    """Sorted indices and their origins, and one fp32 row per run of equal tokens (at most 10 of a run share one).

    Source: aten/src/ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu. The number of distinct tokens is not
    known in a simulation: as many as possible are assumed.
    """
    grad, indices, rows, padding = args[0], args[1], args[2], args[3]
    count = indices.numel()
    if count <= 3072 and padding < 0:
        return []
    segments = min(count, rows) + count // 10
    return [count * 8, count * 8, count * 8 * 2, segments * grad.size(-1) * 4]


def _safe_softmax(args: tuple[Any, ...]) -> list[int]:
    """softmax's own result, where it is -inf, and the zeros that replace such rows."""
    x = args[0]
    return [x.numel() * x.element_size(), x.numel(), x.numel() * x.element_size()]


TEMPORARIES: dict[str, Callable[[tuple[Any, ...]], list[int]]] = {
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "embedding_dense_backward": _embedding_backward,
    "_safe_softmax": _safe_softmax,
}
GEMMS = frozenset({"mm", "addmm", "bmm", "baddbmm"})
