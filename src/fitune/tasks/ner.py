"""Named-entity recognition: BIO classes on tokens, and spans that are always slices of the source.

Every token of a text is labelled once, in the window that answers for it; every predicted entity is taken from the
window that answers for it (``data.split``, ``data.targets``, ``data.merge``).

Legend: T tokens of all windows, W windows, B windows of a batch, L its longest, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fitune.data import Encoder, characters, flatten, merge, split, targets
from fitune.hf import Columns
from fitune.tasks.learner import Learner
from fitune.tasks.metrics import NER_METRICS, EntityMetrics
from fitune.tasks.split import SplitData
from fitune.values import Example, Prediction, Span


@dataclass(frozen=True)
class NerTask:
    """Entity types and how a model's classes stand for them: O, then B-x, I-x for each type."""

    labels: tuple[str, ...]
    """Entity types."""
    head: Literal["softmax", "crf"] = "softmax"
    max_length: int | None = None
    """Window in tokens; None: what the model takes."""
    name: ClassVar[Literal["ner"]] = "ner"
    multi_label: ClassVar[bool] = False
    metric_names: ClassVar[tuple[str, ...]] = (*NER_METRICS, "loss")
    default_metric: ClassVar[str] = "f1"

    @property
    def classes(self) -> tuple[str, ...]:
        """The model's classes, in order."""
        return ("O", *(f"{position}-{label}" for label in self.labels for position in "BI"))

    # -- text to targets ----------------------------------------------------------------------------------------

    def encode(
        self, examples: Sequence[Example], encoder: Encoder, *, class_weights: NDArray[np.float64] | None = None
    ) -> SplitData:
        """Windows and targets of a split. An example without gold gets no labels; of nested spans the outer stays."""
        windows = split(examples, encoder, max_length=self.max_length)
        number_of = {name: number for number, name in enumerate(self.classes)}
        flat = [replace(e, spans=flatten(e.spans)[0]) if e.spans and len(e.spans) > 1 else e for e in examples]
        labels = targets(windows, flat, number_of)
        weight = np.where(labels < 0, 0.0, 1.0 if class_weights is None else class_weights[labels.clip(0)])
        columns = Columns(
            ids_T=windows.ids,
            starts_W1=windows.bounds,
            example_starts_E1=windows.example_bounds,
            pad_id=encoder.pad_id,
            token_labels_T=labels,
            weights_W=np.add.reduceat(weight, windows.bounds[:-1]) if len(windows) else np.zeros(0),
            places=[example.source or "" for example in examples],
        )
        return SplitData(examples, windows, columns)

    # -- logits to spans ----------------------------------------------------------------------------------------

    def read_out(
        self, learner: Learner, logits: Tensor, batch: dict[str, Tensor], *, scores: bool = True
    ) -> tuple[Tensor, Tensor | None]:
        """Class (B, L) of every token of a batch and its probability (B, L), on the device; special tokens get any."""
        if learner.crf is None:
            return logits.argmax(-1), logits.softmax(-1).amax(-1) if scores else None
        mask = batch["attention_mask"].bool() & ~_edges(batch["attention_mask"])
        tags = learner.crf.decode(logits, mask).clamp(min=0)
        if not scores:
            return tags, None
        # Marginals are a gradient: inference mode has to be left, and its tensors copied.
        with torch.inference_mode(False):
            marginals = learner.crf.marginals(logits.clone(), mask.clone())
        return tags, marginals.gather(-1, tags.unsqueeze(-1)).squeeze(-1)

    def predict(
        self, data: SplitData, tags_T: NDArray[np.int64], scores_T: NDArray[np.float32] | None
    ) -> list[Prediction]:
        """Predictions of all examples from the classes (and probabilities) of all tokens of their windows.

        An entity's score is the mean probability of its tokens. A character whose tokens (its bytes) were given to two
        entities belongs to the earlier one.
        """
        windows = data.windows
        found: list[list[Span]] = [[] for _window in range(len(windows))]
        window_of = np.repeat(np.arange(len(windows)), np.diff(windows.bounds))
        for first, last, label in _runs(tags_T, windows.starts, window_of):
            window = int(window_of[first])
            at = characters(windows, data.examples[int(windows.example[window])].text, first, last + 1)
            if at is None:
                continue
            start = max(at[0], found[window][-1].end) if found[window] else at[0]
            if start < at[1]:
                score = None if scores_T is None else min(1.0, float(scores_T[first : last + 1].mean()))
                found[window].append(Span(start, at[1], self.labels[label], score))
        return [
            Prediction(example.text, spans=spans, source=example.source)
            for example, spans in zip(data.examples, merge(windows, found), strict=True)
        ]

    def new_metrics(self) -> EntityMetrics:
        return EntityMetrics(self.labels)


def _runs(
    tags: NDArray[np.int64], starts: NDArray[np.int32], window_of: NDArray[np.int64]
) -> list[tuple[int, int, int]]:
    """Entities as (first token, last token, type number), read as conlleval does: a stray I opens an entity."""
    kept = np.flatnonzero(starts >= 0)
    tag, window = tags[kept], window_of[kept]
    kind = np.where(tag > 0, (tag - 1) // 2, -1)
    opens = np.ones(len(kept), np.bool_)
    opens[1:] = (tag[1:] % 2 == 1) | (kind[1:] != kind[:-1]) | (window[1:] != window[:-1])
    closes = np.ones(len(kept), np.bool_)
    closes[:-1] = opens[1:]
    first, last = np.flatnonzero(opens & (kind >= 0)), np.flatnonzero(closes & (kind >= 0))
    return list(zip(kept[first].tolist(), kept[last].tolist(), kind[first].tolist(), strict=True))


def _edges(mask: Tensor) -> Tensor:
    """(B, L): True at the first and the last position of each row, its special tokens."""
    position = torch.arange(mask.shape[1], device=mask.device)
    return (position == 0) | (position == mask.sum(1, keepdim=True) - 1)
