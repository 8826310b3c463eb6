"""Named-entity recognition: BIO classes on tokens, and spans that are always slices of the source.

Every token of a text is labelled once, in the window that answers for it; a token belongs to the entity of its first
character, or to the entity that begins inside it. Predicted entities are taken from the window that answers for them.

Legend: T tokens of all windows, W windows, B windows of a batch, L its longest, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fitune.data import Encoder, Windows, flatten, split
from fitune.hf import IGNORED, Columns
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
    name = "ner"
    multi_label = False
    metric_names = (*NER_METRICS, "loss")
    default_metric = "f1"

    @property
    def classes(self) -> tuple[str, ...]:
        """The model's classes, in order."""
        return ("O", *(f"{position}-{label}" for label in self.labels for position in "BI"))

    # -- text to targets ----------------------------------------------------------------------------------------

    def encode(
        self, examples: Sequence[Example], encoder: Encoder, *, class_weights: NDArray[np.float64] | None = None
    ) -> SplitData:
        """Windows and targets of a split. An example without gold gets no labels."""
        windows = split(examples, encoder, max_length=self.max_length)
        labels = self._token_labels(examples, windows)
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

    def _token_labels(self, examples: Sequence[Example], windows: Windows) -> NDArray[np.int32]:
        """(T,): class of each token in the window that answers for it, IGNORED elsewhere."""
        base = np.zeros(len(examples) + 1, np.int64)
        np.cumsum([len(example.text) for example in examples], out=base[1:])
        number_of = {label: number for number, label in enumerate(self.labels)}
        span_at = np.zeros(int(base[-1]) + 1, np.int32)  # of each character: number of its span, from 1
        span_starts, span_types = [-1], [0]
        for offset, example in zip(base.tolist(), examples, strict=False):
            for span in flatten(example.spans or ())[0]:
                span_at[offset + span.start : offset + span.end] = len(span_starts)
                span_starts.append(offset + span.start)
                span_types.append(number_of[span.label])
        starts, types = np.array(span_starts, np.int64), np.array(span_types, np.int32)

        lengths = np.diff(windows.bounds)
        offset = np.repeat(base[windows.example], lengths)
        first, last = windows.starts + offset, windows.ends + offset
        real = windows.starts >= 0
        span = np.where(real, span_at[np.where(real, first, 0)], 0)
        if len(starts) > 1:
            # A word that begins outside and has an entity in it stands for that entity.
            begun = np.searchsorted(starts[1:], first)
            inside = (begun < len(starts) - 1) & (starts[1:][np.minimum(begun, len(starts) - 2)] < last)
            span = np.where(real & (span == 0) & inside, begun + 1, span)
        before = np.concatenate([np.zeros(1, np.int32), span[:-1]])
        window_start = np.repeat(windows.char_starts + base[windows.example], lengths)
        begins = (span != before) & (starts[span] >= window_start)
        labels = np.where(span > 0, 2 * types[span] + np.where(begins, 1, 2), 0)
        unlabelled = np.repeat(np.array([e.spans is None for e in examples], np.bool_)[windows.example], lengths)
        return np.where(windows.owned & ~unlabelled, labels, IGNORED).astype(np.int32)

    # -- logits to spans ----------------------------------------------------------------------------------------

    def read_out(self, learner: Learner, logits: Tensor, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Class (B, L) and its probability (B, L) of every token of a batch, on the device."""
        if learner.crf is None:
            best = logits.softmax(-1).max(-1)
            return best.indices, best.values
        mask = batch["attention_mask"].bool()
        mask[:, 0] = False
        mask &= ~_last_of_rows(batch["attention_mask"])
        tags = learner.crf.decode(logits, mask).clamp(min=0)
        probabilities = learner.crf.marginals(logits, mask)
        return tags, probabilities.gather(-1, tags.unsqueeze(-1)).squeeze(-1)

    def predict(
        self, data: SplitData, first: int, last: int, tags_T: NDArray[np.int64], scores_T: NDArray[np.float32]
    ) -> list[Prediction]:
        """Predictions of examples [first, last) from the classes and probabilities of all tokens of their windows."""
        windows, begin = data.windows, int(data.windows.example_bounds[first])
        end = int(windows.example_bounds[last])
        offset = int(windows.bounds[begin])
        tokens = slice(offset, int(windows.bounds[end]))
        found: list[list[Span]] = [[] for _index in range(last - first)]
        window_of = np.repeat(np.arange(begin, end), np.diff(windows.bounds[begin : end + 1]))
        starts, ends = windows.starts[tokens], windows.ends[tokens]
        for a, b, label in _runs(tags_T, starts, window_of):
            window = int(window_of[a])
            example = int(windows.example[window])
            start, stop = int(starts[a]), int(ends[b])
            if windows.owner(example, start, stop) == window:
                score = min(1.0, float(scores_T[a : b + 1].mean()))
                found[example - first].append(Span(start, stop, self.labels[label], score))
        return [
            Prediction(example.text, spans=tuple(spans), source=example.source)
            for example, spans in zip(data.examples[first:last], found, strict=True)
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


def _last_of_rows(mask: Tensor) -> Tensor:
    """(B, L): True at the last position of each row, its closing special token."""
    position = torch.arange(mask.shape[1], device=mask.device)
    return position == (mask.sum(1, keepdim=True) - 1)
