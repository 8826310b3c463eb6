"""BERT in the op order of earlier libraries, so that published measurements are predicted under their own versions.

``transformers`` 4.15 (2022) and ``pytorch_transformers`` 1.0 (2019) differ from today in ways that change memory:
scores are divided by the root of the head dim, an fp32 mask is always added, GELU and LayerNorm of 2019 are written out
op by op (unless apex was installed), and AdamW is Hugging Face's own loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Sizes:
    hidden: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 3072
    vocabulary: int = 30522
    positions: int = 512
    dropout: float = 0.1
    written_out: bool = False
    """GELU and LayerNorm op by op, as pytorch_transformers 1.0 had them."""


BASE = Sizes()
LARGE = Sizes(hidden=1024, layers=24, heads=16, inner=4096)


class WrittenOutNorm(nn.Module):
    """LayerNorm op by op: keeps x - mean twice and the normalized x, where the fused one keeps x."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(hidden)), nn.Parameter(torch.zeros(hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        x = (x - mean) / torch.sqrt(variance + 1e-12)
        return self.weight * x + self.bias


def norm_of(sizes: Sizes) -> nn.Module:
    return WrittenOutNorm(sizes.hidden) if sizes.written_out else nn.LayerNorm(sizes.hidden, eps=1e-12)


class Attention(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads, self.width = sizes.heads, sizes.hidden // sizes.heads
        self.query, self.key, self.value = (nn.Linear(sizes.hidden, sizes.hidden) for _ in range(3))
        self.dropout = nn.Dropout(sizes.dropout)
        self.dense = nn.Linear(sizes.hidden, sizes.hidden)
        self.norm = norm_of(sizes)
        self.dropout_out = nn.Dropout(sizes.dropout)

    def _by_head(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.size(0), x.size(1), self.heads, self.width).permute(0, 2, 1, 3)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query = self.query(hidden)
        key = self._by_head(self.key(hidden))
        value = self._by_head(self.value(hidden))
        scores = torch.matmul(self._by_head(query), key.transpose(-1, -2))
        scores = scores / math.sqrt(self.width)
        scores = scores + mask
        weights = nn.functional.softmax(scores, dim=-1)
        weights = self.dropout(weights)
        context = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
        context = context.view(context.size(0), context.size(1), -1)
        return self.norm(self.dropout_out(self.dense(context)) + hidden)


class Layer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attention = Attention(sizes)
        self.inner = nn.Linear(sizes.hidden, sizes.inner)
        self.outer = nn.Linear(sizes.inner, sizes.hidden)
        self.norm = norm_of(sizes)
        self.dropout = nn.Dropout(sizes.dropout)
        self.written_out = sizes.written_out

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        attended = self.attention(hidden, mask)
        inner = self.inner(attended)
        if self.written_out:
            inner = inner * 0.5 * (1.0 + torch.erf(inner / math.sqrt(2.0)))
        else:
            inner = nn.functional.gelu(inner)
        return self.norm(self.dropout(self.outer(inner)) + attended)


class EarlierBert(nn.Module):
    """Encoder, pooler and one head: ``classes`` for classification, or None for masked words and next sentence."""

    def __init__(self, sizes: Sizes, classes: int | None = 2, *, checkpointing: bool = False) -> None:
        super().__init__()
        self.sizes, self.classes, self.checkpointing = sizes, classes, checkpointing
        self.words = nn.Embedding(sizes.vocabulary, sizes.hidden, padding_idx=0)
        self.positions = nn.Embedding(sizes.positions, sizes.hidden)
        self.segments = nn.Embedding(2, sizes.hidden)
        self.norm = norm_of(sizes)
        self.dropout = nn.Dropout(sizes.dropout)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.pooler = nn.Linear(sizes.hidden, sizes.hidden)
        self.classifier = nn.Linear(sizes.hidden, classes or 2)
        if classes is None:
            self.transform = nn.Linear(sizes.hidden, sizes.hidden)
            self.transform_norm = norm_of(sizes)
            self.word_bias = nn.Parameter(torch.zeros(sizes.vocabulary))

    def forward(self, ids: torch.Tensor, labels: torch.Tensor | None = None) -> Any:
        segments, places = torch.zeros_like(ids), torch.arange(ids.size(1), device=ids.device).expand_as(ids)
        mask = torch.ones_like(ids)[:, None, None, :].to(torch.float32)
        mask = (1.0 - mask) * -10000.0
        hidden = self.words(ids) + self.segments(segments)
        hidden = hidden + self.positions(places)
        hidden = self.dropout(self.norm(hidden))
        for layer in self.layers:
            if self.checkpointing and self.training:
                hidden = checkpoint(layer, hidden, mask, use_reentrant=True)
            else:
                hidden = layer(hidden, mask)
        pooled = torch.tanh(self.pooler(hidden[:, 0]))
        if self.classes is None:
            transformed = self.transform(hidden)
            transformed = transformed * 0.5 * (1.0 + torch.erf(transformed / math.sqrt(2.0)))
            words = nn.functional.linear(self.transform_norm(transformed), self.words.weight) + self.word_bias
            return words, self.classifier(pooled)
        logits = self.classifier(self.dropout(pooled))
        return logits if labels is None else nn.functional.cross_entropy(logits, labels)


class EarlierAdamW(torch.optim.Optimizer):
    """transformers' own AdamW: a loop over parameters with one temporary, the root of the second moment."""

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        super().__init__(parameters, {"lr": 5e-5})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        root = None
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is None:
                continue
            state = self.state[parameter]
            if not state:
                state["first"], state["second"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            state["first"].mul_(0.9).add_(parameter.grad, alpha=0.1)
            state["second"].mul_(0.999).addcmul_(parameter.grad, parameter.grad, value=0.001)
            root = state["second"].sqrt().add_(1e-8)
            parameter.addcdiv_(state["first"], root, value=-5e-5)
