"""From columns of token ids to padded tensors: an optimizer step as indices, cut and padded only when it runs.

Legend: T tokens of all windows, W windows, E examples, B windows of a micro-batch, L its longest window, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

IGNORED = -100
"""Label of a token that has no part in the loss, as everywhere in transformers."""

COUNT = "fitune_count"
"""Key of a cut batch under which the number of its items stands."""


@dataclass(frozen=True, eq=False)
class Columns:
    """All windows of a split, columnar: no Python object per row, token or label.

    A window's tokens include its special tokens. ``example_starts[e]:example_starts[e + 1]`` are the windows of
    example e.
    """

    ids_T: NDArray[np.int32]
    starts_W1: NDArray[np.int64]
    """Window w's tokens are ``[starts[w], starts[w + 1])``."""
    example_starts_E1: NDArray[np.int64]
    pad_id: int
    second_segment_W: NDArray[np.int32] | None = None
    """Position at which a pair's second text starts; the window's length where there is none. None: no segments."""
    token_labels_T: NDArray[np.int16] | NDArray[np.int32] | None = None
    """Class of each token, IGNORED where it has none."""
    targets_W: NDArray[np.int64] | NDArray[np.float32] | None = None
    """Class of each window's example, shape (W,), or 0/1 per class, shape (W, C)."""
    shares_W: NDArray[np.float64] | None = None
    """With ``targets``: what each window's loss counts for; 1 / windows of its example, 0 without gold."""
    weights_W: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Each window's part of a step's ``total_weight``: labelled tokens or its share, times their class weights."""
    places: Sequence[object] = ()
    """Per example where it stands in the user's file (printed as ``file:line``), for messages."""

    def __len__(self) -> int:
        """Examples."""
        return len(self.example_starts_E1) - 1

    @property
    def lengths_W(self) -> NDArray[np.int64]:
        return np.diff(self.starts_W1)

    def windows_of(self, examples: NDArray[np.int64]) -> NDArray[np.int64]:
        """The window numbers of some examples, in their order."""
        first = self.example_starts_E1[examples]
        count = self.example_starts_E1[examples + 1] - first
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(first, count) + within

    def collate(self, windows: NDArray[np.int64]) -> dict[str, torch.Tensor]:
        """Padded tensors of some windows, ready for a model; padded to the longest of them and no further.

        Keys: input_ids, attention_mask (B, L), token_type_ids where segments are known, and ``labels``
        ((B, L), (B,) or (B, C)) with ``weights`` (B,) where there is gold.
        """
        starts = self.starts_W1[windows]
        lengths = self.starts_W1[windows + 1] - starts
        position = np.arange(int(lengths.max()))
        present = position < lengths[:, None]
        index = np.where(present, starts[:, None] + position, 0)
        batch: dict[str, Any] = {
            "input_ids": np.where(present, self.ids_T[index], self.pad_id).astype(np.int64),
            "attention_mask": present.astype(np.int64),
        }
        if self.second_segment_W is not None:
            second = position >= self.second_segment_W[windows][:, None]
            batch["token_type_ids"] = (second & present).astype(np.int64)
        if self.token_labels_T is not None:
            batch["labels"] = np.where(present, self.token_labels_T[index], IGNORED).astype(np.int64)
        elif self.targets_W is not None:
            batch["labels"] = self.targets_W[windows]
            assert self.shares_W is not None
            batch["weights"] = self.shares_W[windows].astype(np.float32)
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in batch.items()}


class Step:
    """All windows of one optimizer step, unpadded: what ``microbatch.Stepper`` cuts.

    ``lengths`` are tokens per window, ``total_weight`` what the summed loss is divided by: labelled tokens or
    examples of the whole step (weighted, where classes have weights).
    """

    def __init__(self, columns: Columns, examples: NDArray[np.int64]) -> None:
        self.columns, self.examples = columns, examples
        self.windows = columns.windows_of(examples)
        self.lengths: list[int] = columns.lengths_W[self.windows].tolist()
        self.total_weight = float(columns.weights_W[self.windows].sum())

    @property
    def tokens(self) -> int:
        """Useful tokens, special ones included."""
        return sum(self.lengths)

    def collate(self, indices: Sequence[int]) -> dict[str, torch.Tensor]:
        """The padded micro-batch of the windows at ``indices`` of this step."""
        return self.columns.collate(self.windows[np.asarray(indices, dtype=np.int64)])

    def places(self) -> list[str]:
        """``file:line`` of the step's examples, in order."""
        return [str(self.columns.places[e]) for e in self.examples.tolist() if e < len(self.columns.places)]


class StepData(torch.utils.data.Dataset[int]):
    """A training split as a dataset of example numbers: the collator turns a batch of them into one Step."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, example: int) -> int:
        return example

    def step(self, examples: Sequence[int]) -> Step:
        return Step(self.columns, np.asarray(examples, dtype=np.int64))


class EpochOrder(torch.utils.data.Sampler[int]):
    """A random order of the rows that is a pure function of (seed, epoch): resuming needs nothing but the two."""

    def __init__(self, rows: Sized, seed: int, *, rank: int = 0, ranks: int = 1) -> None:
        self.rows, self.seed, self.epoch, self.rank, self.ranks = rows, seed, 0, rank, ranks

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def order(self) -> NDArray[np.int64]:
        """All rows in this epoch's order."""
        return np.random.default_rng((self.seed, self.epoch)).permutation(len(self.rows))

    def __len__(self) -> int:
        return -(-len(self.rows) // self.ranks)

    def __iter__(self) -> Iterator[int]:
        order = self.order()
        # Every rank takes as many steps as the others: the first rows fill up the last round.
        order = np.concatenate([order, order[: len(self) * self.ranks - len(order)]])
        return iter(order[self.rank :: self.ranks].tolist())


class EpochLoader(torch.utils.data.DataLoader[Any]):
    """A DataLoader of Steps whose ``set_epoch`` reaches the order."""

    def __init__(self, data: StepData, order: EpochOrder, batch_size: int) -> None:
        super().__init__(data, batch_size=batch_size, sampler=order, collate_fn=data.step)

    def set_epoch(self, epoch: int) -> None:
        self.sampler.set_epoch(epoch)  # pyright: ignore[reportAttributeAccessIssue]


class PaddedStep:
    """One optimizer step of a user's own script: a batch that a collator has padded, cut along dimension 0.

    Every tensor (or list) whose first dimension is the number of rows is cut; others go to each micro-batch whole.
    ``counts`` are the items per row over which the model averages its loss: labels other than -100, or 1.
    """

    def __init__(self, batch: Mapping[str, Any], main_input: str, counts: list[int]) -> None:
        self.batch, self.counts = batch, counts
        self.total_weight = float(sum(counts))
        mask = batch.get("attention_mask")
        if isinstance(mask, torch.Tensor) and mask.dim() == 2 and mask.shape[0] == len(counts):
            # Position of the last token that is no padding: padding on the left costs what it costs.
            width = mask.shape[1]
            last = (mask != 0).long() * torch.arange(1, width + 1, device=mask.device)
            self.lengths: list[int] = last.amax(1).clamp(min=1).tolist()
            self._width = width
        else:
            self._width = 0
            shape = batch[main_input].shape if main_input in batch else (len(counts), 1)
            self.lengths = [int(shape[1]) if len(shape) > 1 else 1] * len(counts)

    def collate(self, indices: Sequence[int]) -> dict[str, Any]:
        """The rows at ``indices``, without the columns that are padding in all of them; COUNT: their items."""
        longest = max(self.lengths[i] for i in indices)
        rows = list(indices)
        cut = {name: self._cut(value, rows, longest) for name, value in self.batch.items()}
        return {**cut, COUNT: sum(self.counts[i] for i in rows)}

    def _cut(self, value: Any, rows: list[int], longest: int) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() and value.shape[0] == len(self.counts):
            cut = value[rows] if len(rows) < len(self.counts) else value
            padded = self._width > longest and cut.dim() == 2 and cut.shape[1] == self._width
            return cut[:, :longest].contiguous() if padded else cut
        if isinstance(value, list) and len(value) == len(self.counts):
            return [value[i] for i in rows]
        return value


def loss_counts(labels: Any, rows: int, *, shifted: bool = False) -> list[int]:
    """Items of each row over which transformers' heads average: labels other than -100, else one a row.

    Args:
        labels: the batch's labels, or None. Integers (B, L) count tokens, integers (B,) rows, floats rows.
        shifted: the loss predicts the next token, so the first label of a row has no part in it.
    """
    if not isinstance(labels, torch.Tensor) or labels.is_floating_point() or not labels.dim():
        return [1] * rows
    counted = labels.ne(IGNORED)
    if counted.dim() == 1:
        return [int(c) for c in counted.tolist()]
    return (counted[..., 1:] if shifted else counted).flatten(1).sum(1).tolist()
