"""A linear-chain conditional random field over token scores (Lafferty, McCallum, Pereira 2001), with BIO constraints.

Always float32 (float64 if the scores are), also under autocast. Everything happens over the labelled positions
alone: they are gathered first, so that [CLS], padding and later word pieces never enter, whatever the mask.
Losses are sums per sequence: a step's loss is the same however the step is cut.

Legend: B sequences, L positions of the input, T labelled positions of the longest sequence, C labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["FORBIDDEN", "LinearChainCrf", "bio_constraints"]

FORBIDDEN = -1e4
"""Score of a transition that BIO rules out; fixed, never learned."""

IGNORED = -100


def bio_constraints(labels: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
    """What BIO allows between ``labels``, whose order is that of the classes.

    Returns ``allowed`` [C, C] (from, to), ``allowed_start`` [C], and ``begin`` [C]: the class of ``B-X`` for ``I-X``,
    else the class itself. A label that is not ``I-X``, and an ``I-X`` without a ``B-X``, may follow anything.
    """
    position = {label: index for index, label in enumerate(labels)}
    size = len(labels)
    allowed = torch.ones(size, size, dtype=torch.bool)
    allowed_start = torch.ones(size, dtype=torch.bool)
    begin = torch.arange(size)
    for label, inside in position.items():
        kind = label[2:]
        first = position.get(f"B-{kind}")
        if not label.startswith("I-") or first is None:
            continue
        allowed[:, inside] = False
        allowed[first, inside] = allowed[inside, inside] = True
        allowed_start[inside] = False
        begin[inside] = first
    return allowed, allowed_start, begin


class LinearChainCrf(nn.Module):
    """Transition scores between ``labels`` (in class order) and the sums over paths that they need."""

    allowed: Tensor
    allowed_start: Tensor
    begin: Tensor

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__()
        size = len(labels)
        self.transitions = nn.Parameter(torch.zeros(size, size))
        self.start = nn.Parameter(torch.zeros(size))
        self.end = nn.Parameter(torch.zeros(size))
        for name, value in zip(("allowed", "allowed_start", "begin"), bio_constraints(labels), strict=True):
            self.register_buffer(name, value, persistent=False)

    def negative_log_likelihood(self, logits: Tensor, labels: Tensor) -> Tensor:
        """-log P(labels) of each sequence, [B]; 0 for a sequence without a labelled position.

        ``logits`` [B, L, C]; ``labels`` [B, L] int64 with -100 where there is no label. An ``I-X`` that nothing opened
        (the window began inside the entity) is read as ``B-X``, as conlleval reads it.
        """
        with torch.autocast(logits.device.type, enabled=False):
            mask = labels != IGNORED
            order, inside = _gather_order(mask)
            scores = _take(logits, order, inside)
            gold = self._opened(labels.gather(1, order).masked_fill(~inside, 0), inside)
            return self._log_partition(scores, inside) - self._path_score(scores, gold, inside)

    def decode(self, logits: Tensor, mask: Tensor) -> Tensor:
        """The best path that BIO allows, [B, L] int64, -100 outside ``mask`` ([B, L] bool)."""
        with torch.no_grad(), torch.autocast(logits.device.type, enabled=False):
            order, inside = _gather_order(mask)
            best = self._viterbi(_take(logits, order, inside), inside)
            paths = torch.full(mask.shape, IGNORED, dtype=torch.int64, device=logits.device)
            # Places beyond a sequence's end point at positions outside the mask: they keep -100.
            return paths.scatter(1, order, best.masked_fill(~inside, IGNORED))

    def marginals(self, logits: Tensor, mask: Tensor) -> Tensor:
        """P(label at position | input), [B, L, C]; zero outside ``mask`` ([B, L] bool)."""
        with torch.enable_grad(), torch.autocast(logits.device.type, enabled=False):
            order, inside = _gather_order(mask)
            scores = _take(logits.detach(), order, inside).requires_grad_()
            # d log Z / d score is the marginal.
            (gathered,) = torch.autograd.grad(self._log_partition(scores, inside).sum(), scores)
            spread = torch.zeros(*mask.shape, scores.shape[-1], dtype=scores.dtype, device=scores.device)
            index = order.unsqueeze(-1).expand_as(gathered)
            return spread.scatter(1, index, gathered * inside.unsqueeze(-1))

    def constrained(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Transitions [C, C], start [C] and end [C] scores with the forbidden ones fixed."""
        transitions = self.transitions.to(dtype).masked_fill(~self.allowed, FORBIDDEN)
        start = self.start.to(dtype).masked_fill(~self.allowed_start, FORBIDDEN)
        return transitions, start, self.end.to(dtype)

    def _opened(self, gold: Tensor, inside: Tensor) -> Tensor:
        """``gold`` [B, T] with every ``I-X`` that may not stand there turned into ``B-X``."""
        bad = torch.zeros_like(inside)
        if gold.shape[1]:
            bad[:, 0] = ~self.allowed_start[gold[:, 0]]
            bad[:, 1:] = ~self.allowed[gold[:, :-1], gold[:, 1:]]
        return torch.where(bad & inside, self.begin[gold], gold)

    def _path_score(self, scores: Tensor, gold: Tensor, inside: Tensor) -> Tensor:
        if not gold.shape[1]:
            return scores.sum((1, 2))  # zeros, but still part of the graph
        transitions, start, end = self.constrained(scores.dtype)
        emitted = scores.gather(2, gold.unsqueeze(-1)).squeeze(-1) * inside
        moved = transitions[gold[:, :-1], gold[:, 1:]] * inside[:, 1:]
        last = gold.gather(1, (inside.sum(1, keepdim=True) - 1).clamp_min(0)).squeeze(1)
        edges = (start[gold[:, 0]] + end[last]) * inside[:, 0]
        return emitted.sum(1) + moved.sum(1) + edges

    def _log_partition(self, scores: Tensor, inside: Tensor) -> Tensor:
        if not scores.shape[1]:
            return scores.sum((1, 2))  # zeros, but still part of the graph
        transitions, start, end = self.constrained(scores.dtype)
        alpha = start + scores[:, 0]  # [B, C]: log of the summed weight of all prefixes that end in each label
        for step, present in enumerate(inside.unbind(1)[1:], start=1):
            moved = torch.logsumexp(alpha.unsqueeze(2) + transitions, dim=1) + scores[:, step]
            alpha = torch.where(present.unsqueeze(1), moved, alpha)
        return torch.logsumexp(alpha + end, dim=1) * inside[:, 0]

    def _viterbi(self, scores: Tensor, inside: Tensor) -> Tensor:
        """[B, T]; places beyond a sequence's end hold anything."""
        if not scores.shape[1]:
            return inside.long()
        transitions, start, end = self.constrained(scores.dtype)
        best = start + scores[:, 0]
        came_from: list[Tensor] = []
        for step, present in enumerate(inside.unbind(1)[1:], start=1):
            value, origin = (best.unsqueeze(2) + transitions).max(dim=1)
            best = torch.where(present.unsqueeze(1), value + scores[:, step], best)
            came_from.append(origin)
        label = (best + end).argmax(dim=1, keepdim=True)  # [B, 1]: the label at each sequence's last position
        path = [label]
        for origin, present in zip(reversed(came_from), reversed(inside.unbind(1)[1:]), strict=True):
            label = torch.where(present.unsqueeze(1), origin.gather(1, label), label)
            path.append(label)
        return torch.cat(path[::-1], dim=1)


def _gather_order(mask: Tensor) -> tuple[Tensor, Tensor]:
    """For every sequence the positions inside ``mask`` first, in order: indices [B, T], and which of them count."""
    counts = mask.sum(1)
    longest = int(counts.max()) if counts.numel() else 0
    order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)[:, :longest]
    return order, torch.arange(longest, device=mask.device) < counts.unsqueeze(1)


def _take(logits: Tensor, order: Tensor, inside: Tensor) -> Tensor:
    """Scores [B, T, C] of the labelled positions in full precision; 0 beyond a sequence's end."""
    scores = logits.gather(1, order.unsqueeze(-1).expand(-1, -1, logits.shape[-1]))
    return (scores if scores.dtype == torch.float64 else scores.float()).masked_fill(~inside.unsqueeze(-1), 0)
