"""Attention with dropout over a pack of windows on a CPU, forward and backward, as one node of autograd's graph.

PyTorch's fused CPU attention knows no dropout; its plain path then scales query and key apart, looks for rows that are
masked throughout (here there are none) and draws dropout one number at a time. The slow reference is
``functional.scaled_dot_product_attention`` of each window with the same factors of dropout, in the tests.

Legend: T tokens of the pack, H heads, D head size, n windows of a group, L tokens of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fitune.hf.dropout import KeepScales


class DroppedAttention(torch.autograd.Function):
    """``apply(query, key, value, groups, dropout, scale)``: (T, H, D) each -> (T, H, D).

    ``groups`` are (windows, tokens of each), neighbours in the pack and together all of it. ``scale`` None: 1/sqrt(D).
    """

    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        groups: Sequence[tuple[int, int]],
        dropout: float,
        scale: float | None,
    ) -> Tensor:
        scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
        factors = KeepScales(dropout)
        out = query.new_empty(query.shape)
        kept: list[Tensor] = []
        start = 0
        for windows, length in groups:
            piece = slice(start, start + windows * length)
            q, k, v = (_heads(tensor[piece], windows) for tensor in (query, key, value))
            # beta 0: the first argument is not read.
            scores = torch.baddbmm(q.new_empty(()), q, k.transpose(1, 2), beta=0, alpha=scale)
            weights = torch.softmax(scores, -1)
            scales = factors.draw(weights.numel()).view(weights.shape)
            _put(out[piece], torch.bmm(weights * scales, v), windows)
            kept += [weights, scales]
            start = piece.stop
        ctx.save_for_backward(query, key, value, *kept)
        ctx.groups, ctx.scale = groups, scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:  # pyright: ignore
        query, key, value, *kept = ctx.saved_tensors
        of_query, of_key, of_value = (tensor.new_empty(tensor.shape) for tensor in (query, key, value))
        start = 0
        for number, (windows, length) in enumerate(ctx.groups):
            piece = slice(start, start + windows * length)
            weights, scales = kept[2 * number : 2 * number + 2]
            q, k, v, g = (_heads(tensor[piece], windows) for tensor in (query, key, value, grad))
            _put(of_value[piece], torch.bmm((weights * scales).transpose(1, 2), g), windows)
            of_weights = torch.bmm(g, v.transpose(1, 2)).mul_(scales)
            of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)  # pyright: ignore
            none = of_scores.new_empty(())
            _put(of_query[piece], torch.baddbmm(none, of_scores, k, beta=0, alpha=ctx.scale), windows)
            _put(of_key[piece], torch.baddbmm(none, of_scores.transpose(1, 2), q, beta=0, alpha=ctx.scale), windows)
            start = piece.stop
        return of_query, of_key, of_value, None, None, None


def _heads(piece: Tensor, windows: int) -> Tensor:
    """(n * L, H, D) -> (n * H, L, D); of a single window a view."""
    return piece.unflatten(0, (windows, -1)).transpose(1, 2).flatten(0, 1)


def _put(piece: Tensor, heads: Tensor, windows: int) -> None:
    """(n * H, L, D) into a piece (n * L, H, D)."""
    piece.unflatten(0, (windows, -1)).copy_(heads.unflatten(0, (windows, -1)).transpose(1, 2))
