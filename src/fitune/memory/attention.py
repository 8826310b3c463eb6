"""Which kernel PyTorch takes for scaled-dot-product attention on a card, and what it leaves in memory.

The rules are those of ``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``, for dense inputs:

* flash: fp16 or bf16, sm 8.0 or later (sm 7.5 before PyTorch 2.2), no mask, head dim at most 256 (128 before 2.2);
  with a gradient and a head dim above 192 not on sm 8.6, 8.9 and 12.x.
* cuDNN, preferred on sm 9.0 and 10.0 since PyTorch 2.7: fp16 or bf16, head dim a multiple of 8 and at most 128 (with a
  gradient), ``dropout * 16`` a whole number.
* memory-efficient: fp16 and fp32 from sm 5.0, bf16 from sm 8.0; the head dim must be a multiple of the alignment
  (fp16/bf16: 8 from sm 7.0, else 1; fp32: 4 from sm 8.0, else 1).
* math otherwise; always before PyTorch 2.0.
"""

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F

Kernel = Literal["flash", "cudnn", "efficient", "math", "cpu"]

_HALF = (torch.float16, torch.bfloat16)
_aten: Any = torch.ops.aten


def choose_kernel(
    compute_capability: tuple[int, int],
    dtype: torch.dtype,
    *,
    masked: bool,
    dropout: float,
    head_dim: int,
    trained: bool = True,
    torch_version: tuple[int, int] = (2, 6),
) -> Kernel:
    """The kernel for dense query, key and value of one dtype and head dim. ``trained``: a gradient is needed."""
    if torch_version < (2, 0):
        return "math"
    half = dtype in _HALF
    if (
        torch_version >= (2, 7)
        and compute_capability in ((9, 0), (10, 0))
        and half
        and head_dim % 8 == 0
        and head_dim <= 128
        and (dropout * 16).is_integer()
    ):
        return "cudnn"
    if _flash_accepts(compute_capability, half, masked, head_dim, trained, torch_version):
        return "flash"
    known = (
        dtype == torch.float32 or dtype == torch.float16 or (dtype == torch.bfloat16 and compute_capability >= (8, 0))
    )
    if known and compute_capability >= (5, 0) and head_dim % _alignment(compute_capability, half) == 0:
        return "efficient"
    return "math"


def _flash_accepts(
    compute_capability: tuple[int, int],
    half: bool,
    masked: bool,
    head_dim: int,
    trained: bool,
    torch_version: tuple[int, int],
) -> bool:
    if masked or not half:
        return False
    if torch_version < (2, 2):
        return compute_capability >= (7, 5) and head_dim <= 128 and head_dim % 8 == 0
    consumer = compute_capability in ((8, 6), (8, 9)) or compute_capability[0] == 12
    return compute_capability >= (8, 0) and head_dim <= 256 and not (consumer and trained and head_dim > 192)


def _alignment(compute_capability: tuple[int, int], half: bool) -> int:
    if half:
        return 8 if compute_capability >= (7, 0) else 1
    return 4 if compute_capability >= (8, 0) else 1


def attend(
    kernel: Kernel,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    grouped: bool,
) -> torch.Tensor:
    """Attention of [B, heads, L, D] by the given kernel, so that autograd keeps what that kernel keeps."""
    if grouped and kernel not in ("flash", "cudnn"):
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    if kernel == "cpu":
        return _aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, dropout, causal, attn_mask=_as_bias(mask, query), scale=scale
        )[0]
    if kernel == "math":
        return _math(query, key, value, mask, dropout, causal, scale)
    if kernel == "efficient" or mask is not None:
        bias = None if mask is None else _aligned_bias(_as_bias(mask, query), query, key)
        return _aten._scaled_dot_product_efficient_attention(
            query, key, value, bias, _any_grad(query, key, value), dropout, causal, scale=scale
        )[0]
    width = query.size(-1)
    if width % 8:
        query, key, value = (F.pad(x, (0, 8 - width % 8)) for x in (query, key, value))
        scale = 1 / math.sqrt(width) if scale is None else scale
    if grouped:
        # The meta kernel wants equal heads. The real one keeps the grouped heads: here key and value are overstated.
        key, value = (_repeated_heads(x, query) for x in (key, value))
    out = _aten._scaled_dot_product_flash_attention(query, key, value, dropout, causal, False, scale=scale)[0]
    return out[..., :width]


def _repeated_heads(x: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    times = query.size(-3) // x.size(-3)
    wide = x.unsqueeze(-3).expand(*x.shape[:-2], times, *x.shape[-2:])
    return wide.flatten(-4, -3)


def _any_grad(*tensors: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def _as_bias(mask: torch.Tensor | None, query: torch.Tensor) -> torch.Tensor | None:
    """A boolean mask becomes one of the query's dtype, at every call: [B, 1, L, L]."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.where(mask, torch.zeros((), dtype=query.dtype, device=mask.device), -math.inf)


def _aligned_bias(bias: torch.Tensor | None, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor | None:
    """The last dim is padded to a multiple of 16 (a copy) and the bias expanded over the heads (a view)."""
    if bias is None:
        return None
    length = bias.size(-1)
    if length % 16:
        bias = F.pad(bias, (0, 16 - length % 16))[..., :length]
    return bias.expand(query.size(0), query.size(1), query.size(2), key.size(2))


def _math(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
) -> torch.Tensor:
    """The reference path: scores in fp32 for fp16 and bf16, softmax, dropout and product each a tensor of B*H*L*L."""
    origin = query.dtype
    if origin in _HALF:
        query, key, value = query.float(), key.float(), value.float()
    factor = math.sqrt(1 / math.sqrt(query.size(-1)) if scale is None else scale)
    bias = _as_bias(mask, query)
    if causal:
        shape = (query.size(-2), key.size(-2))
        bias = _as_bias(torch.ones(shape, dtype=torch.bool, device=query.device).tril(), query)
    scores = (query * factor) @ (key.transpose(-2, -1) * factor)
    if bias is not None:
        scores = scores + bias
    weights = _aten._safe_softmax(scores, -1)
    if dropout > 0:
        weights = torch.native_dropout(weights, dropout, True)[0]
    return (weights @ value).to(origin)
