"""How the windows of a pack lie end to end, and attention within each of them.

Windows lie longest first, and neighbours of like length are attended to in one batched call. On CPU only equal lengths
are alike: a call for each length beats gathering into padded groups (37 against 46 ms for forward and backward of one
bert-base layer's attention over 1,056 tokens of CLUENER lengths, 103 against 122 ms over reviews; one Zen 3 core, torch
2.13). On a GPU every call costs a launch, so groups are wider and padded to their longest for the attention alone.

Legend: B windows, L the longest, T tokens without padding, H heads, D head size, C classes, n windows of a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fitune.hf.attending import DroppedAttention
from fitune.hf.dropout import is_quick
from fitune.hf.moving import moved, to_device

LIKE_LENGTHS = {"cpu": 1.0, "cuda": 2.0}
"""Device -> windows go into one group as long as the longest is at most so many times as long as the shortest."""


@dataclass(frozen=True, eq=False)
class Group:
    """Windows of like length, neighbours in the pack."""

    tokens: int
    windows: int
    longest: int
    index: Tensor | None
    """(n * longest,): token of the group at each place of the padded rows; None: all have the same length."""
    kept: Tensor | None
    """(tokens,): places of the padded rows that hold a token."""
    mask: Tensor | None
    """(n, 1, 1, longest) bool: True where there is a token."""


class Layout:
    """Where each window of a padded batch (``mask`` (B, L), True at its tokens) lies in the pack.

    ``quick_dropout``: of attention on a CPU by ``DroppedAttention``.
    """

    def __init__(self, mask: Tensor, first_position: int = 0, *, quick_dropout: bool = False) -> None:
        present = mask.cpu().numpy()
        self._quick_dropout = quick_dropout
        self.rows, self.width = present.shape
        lengths = present.sum(1)
        self._order = np.argsort(-lengths, kind="stable")
        self.lengths: list[int] = lengths[self._order].tolist()
        if self.lengths[-1] < 1:
            raise ValueError("a window without tokens")
        self.tokens = int(lengths.sum())
        row, column = np.nonzero(present[self._order])
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        positions = np.arange(self.tokens) - np.repeat(self._starts, self.lengths) + first_position
        self._places: dict[str, Tensor] = {
            # Flat place (row * L + column) of each token in the padded batch.
            "flat": torch.from_numpy(self._order[row] * self.width + column),
            "first": torch.from_numpy(self._starts),
            "row": torch.from_numpy(np.argsort(self._order, kind="stable")),
            "position": torch.from_numpy(positions).unsqueeze(0),
        }
        self._on: dict[torch.device, tuple[dict[str, Tensor], list[Group]]] = {}
        self._cumulative: dict[torch.device, Tensor] = {}

    # -- rows to pack and back ----------------------------------------------------------------------------------

    def pack(self, padded: Tensor) -> Tensor:
        """(B, L) -> (1, T)."""
        return padded.flatten()[self._at(padded.device)["flat"]].unsqueeze(0)

    def unpack(self, packed: Tensor) -> Tensor:
        """(1, T, C) -> (B, L, C), 0 in padding."""
        flat = self._at(packed.device)["flat"]
        padded = packed.new_zeros(self.rows * self.width, packed.shape[-1])
        return padded.index_copy(0, flat, packed[0]).view(self.rows, self.width, -1)

    def unpack_rows(self, packed: Tensor) -> Tensor:
        """(B, C) in the order of the pack -> (B, C) in that of the batch."""
        return packed[self._at(packed.device)["row"]]

    def first_tokens(self, hidden: Tensor) -> Tensor:
        """(1, T, hidden) -> (B, 1, hidden): each window's first token, in the order of the pack."""
        return hidden[0].index_select(0, self._at(hidden.device)["first"]).unsqueeze(1)

    def position_ids(self, device: torch.device) -> Tensor:
        """(1, T): restarts with every window."""
        return self._at(device)["position"]

    # -- attention ----------------------------------------------------------------------------------------------

    def attend(self, query: Tensor, key: Tensor, value: Tensor, *, dropout: float, scale: float | None) -> Tensor:
        """(1, H, T, D) each -> (1, H, T, D)."""
        if query.shape[0] != 1 or query.shape[2] != self.tokens or key.shape[2] != self.tokens:
            raise RuntimeError(f"attention over {tuple(query.shape)}, but the pack has {self.tokens} tokens")
        if _varlen_runs(query, dropout):
            return self._varlen(query, key, value, scale)
        _places, groups = self._placed(query.device)
        # (T, H, D): a window's tokens are rows, so that groups are slices and gathers of whole rows.
        rows = [tensor[0].transpose(0, 1) for tensor in (query, key, value)]
        if self._quick_dropout and is_quick(query, dropout):
            sizes = [(group.windows, group.longest) for group in groups]
            return DroppedAttention.apply(*rows, sizes, dropout, scale).transpose(0, 1).unsqueeze(0)  # pyright: ignore
        # split, not slices: its backward is one concatenation instead of a zero-filled pack for each group.
        pieces = zip(*(row.split([group.tokens for group in groups]) for row in rows), strict=True)
        parts = [_attend_group(group, q, k, v, dropout, scale) for group, (q, k, v) in zip(groups, pieces, strict=True)]
        together = parts[0] if len(parts) == 1 else torch.cat(parts)
        return together.transpose(0, 1).unsqueeze(0)

    def _varlen(self, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        from torch.nn.attention.varlen import varlen_attn

        device = query.device
        if device not in self._cumulative:
            ends = torch.tensor([0, *np.cumsum(self.lengths).tolist()], dtype=torch.int32)
            self._cumulative[device] = moved(ends, device)
        ends, longest = self._cumulative[device], self.lengths[0]
        q, k, v = (tensor[0].transpose(0, 1).contiguous() for tensor in (query, key, value))
        out = varlen_attn(q, k, v, ends, ends, longest, longest, scale=scale)
        assert isinstance(out, Tensor)
        return out.transpose(0, 1).unsqueeze(0)

    # -- tensors, made once per device --------------------------------------------------------------------------

    def _at(self, device: torch.device) -> dict[str, Tensor]:
        return self._placed(device)[0]

    def _placed(self, device: torch.device) -> tuple[dict[str, Tensor], list[Group]]:
        if device not in self._on:
            places = to_device(self._places, device)
            ratio = LIKE_LENGTHS.get(device.type, 2.0)
            groups = [self._group(first, last, device) for first, last in like_lengths(self.lengths, ratio)]
            self._on[device] = places, groups
        return self._on[device]

    def _group(self, first: int, last: int, device: torch.device) -> Group:
        lengths = np.array(self.lengths[first:last])
        longest, tokens, start = int(lengths[0]), int(lengths.sum()), int(self._starts[first])
        if lengths[-1] == longest:
            return Group(tokens, last - first, longest, None, None, None)
        position = np.arange(longest)
        present = position < lengths[:, None]
        starts = self._starts[first:last, None] - start
        index, kept = np.where(present, starts + position, 0).ravel(), np.flatnonzero(present)
        tensors = [moved(torch.from_numpy(a), device) for a in (index, kept, present[:, None, None, :])]
        return Group(tokens, last - first, longest, *tensors)


def _attend_group(
    group: Group, query: Tensor, key: Tensor, value: Tensor, dropout: float, scale: float | None
) -> Tensor:
    """Tokens of a group, (tokens, H, D) each -> the same."""
    pieces = [query, key, value]
    if group.index is not None:
        index = group.index
        pieces = [piece.index_select(0, index) for piece in pieces]
    query, key, value = (piece.unflatten(0, (group.windows, group.longest)).transpose(1, 2) for piece in pieces)
    out = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=group.mask, dropout_p=dropout, scale=scale
    )
    out = out.transpose(1, 2).flatten(0, 1)
    return out if group.kept is None else out.index_select(0, group.kept)


def like_lengths(lengths: list[int], ratio: float) -> list[tuple[int, int]]:
    """Groups [first, last) of windows whose lengths differ by at most ``ratio``; ``lengths`` fall."""
    groups: list[tuple[int, int]] = []
    first = 0
    for window, length in enumerate(lengths):
        if lengths[first] > length * ratio:
            groups.append((first, window))
            first = window
    return [*groups, (first, len(lengths))]


def _varlen_runs(query: Tensor, dropout: float) -> bool:
    """PyTorch's varlen kernel: sm80 and newer, half precision, and it knows no dropout."""
    if query.device.type != "cuda" or dropout or query.dtype not in (torch.float16, torch.bfloat16):
        return False
    if torch.cuda.get_device_capability(query.device) < (8, 0):
        return False
    return find_spec("torch.nn.attention.varlen") is not None
