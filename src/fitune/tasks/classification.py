"""Text classification: one label a text, several (with thresholds tuned on dev), or a pair of texts.

A text that is longer than the window is split. One rule combines its windows, everywhere: **its logits are the mean
of its windows' logits**, and each window bears an equal share of the example's loss. (For softmax the mean of logits
is the normalised geometric mean of the windows' probabilities, whose negative logarithm is the mean of the windows'
losses up to that normalisation.)

Legend: W windows, E examples, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from fitune.data import Encoder, split
from fitune.hf import Columns
from fitune.tasks.metrics import MULTI_LABEL_METRICS, SINGLE_LABEL_METRICS, ClassMetrics, MultiLabelMetrics
from fitune.tasks.split import SplitData
from fitune.values import Example, Prediction

DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True)
class ClassificationTask:
    """Class names, and for multi-label the least probability at which each is given."""

    labels: tuple[str, ...]
    multi_label: bool = False
    max_length: int | None = None
    """Window in tokens; None: what the model takes."""
    thresholds: tuple[float, ...] = ()
    """Multi-label: one per class; empty: 0.5."""
    pairs: bool = False
    """The texts come in pairs."""
    name: ClassVar[Literal["classification"]] = "classification"
    head: ClassVar[Literal["softmax"]] = "softmax"

    @property
    def classes(self) -> tuple[str, ...]:
        """The model's classes, in order."""
        return self.labels

    @property
    def metric_names(self) -> tuple[str, ...]:
        return (*(MULTI_LABEL_METRICS if self.multi_label else SINGLE_LABEL_METRICS), "loss")

    @property
    def default_metric(self) -> str:
        return "f1" if self.multi_label else "accuracy"

    # -- text to targets ----------------------------------------------------------------------------------------

    def encode(
        self, examples: Sequence[Example], encoder: Encoder, *, class_weights: NDArray[np.float64] | None = None
    ) -> SplitData:
        """Windows and targets of a split; an example without gold has weight 0."""
        windows = split(examples, encoder, max_length=self.max_length)
        number_of = {label: number for number, label in enumerate(self.labels)}
        targets: NDArray[np.int64] | NDArray[np.float32]
        gold = np.array([float(example.labels is not None) for example in examples])
        weight = gold.copy()
        if self.multi_label:
            targets = np.zeros((len(examples), len(self.labels)), np.float32)
            for row, example in enumerate(examples):
                targets[row, [number_of[label] for label in example.labels or ()]] = 1
        else:
            targets = np.array([number_of[e.labels[0]] if e.labels else 0 for e in examples], np.int64)
            if class_weights is not None:
                weight *= class_weights[targets]
        counts = np.diff(windows.example_bounds)
        columns = Columns(
            ids_T=windows.ids,
            starts_W1=windows.bounds,
            example_starts_E1=windows.example_bounds,
            pad_id=encoder.pad_id,
            second_segment_W=self._second_segments(windows.segments, windows.bounds) if encoder.uses_segments else None,
            targets_W=targets[windows.example],
            shares_W=(gold / counts)[windows.example],
            weights_W=(weight / counts)[windows.example],
            places=[example.source or "" for example in examples],
        )
        return SplitData(examples, windows, columns)

    def _second_segments(self, segments: NDArray[np.int8], bounds: NDArray[np.int64]) -> NDArray[np.int32] | None:
        """(W,): where each window's second text begins; None when no window has one."""
        if not self.pairs:
            return None
        seconds = np.add.reduceat(segments.astype(np.int64), bounds[:-1])
        return (np.diff(bounds) - seconds).astype(np.int32)

    # -- logits to labels ---------------------------------------------------------------------------------------

    def probabilities(self, logits_W: NDArray[np.float32], window_example: NDArray[np.int64]) -> NDArray[np.float32]:
        """(E, C) from the logits of all windows (W, C); ``window_example`` counts the examples from 0, in order."""
        counts = np.bincount(window_example)
        begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
        mean = np.add.reduceat(logits_W.astype(np.float64), begins, axis=0) / counts[:, None]
        if self.multi_label:
            return torch.from_numpy(mean).sigmoid().numpy().astype(np.float32)
        return torch.from_numpy(mean).softmax(-1).numpy().astype(np.float32)

    def predict(self, data: SplitData, probabilities: NDArray[np.float32]) -> list[Prediction]:
        """Predictions of all examples from their probabilities (E, C)."""
        if self.multi_label:
            chosen = [np.flatnonzero(row).tolist() for row in probabilities >= self.threshold_array()]
        else:
            chosen = [[best] for best in probabilities.argmax(-1).tolist()]
        return [
            Prediction(
                example.text,
                labels=tuple(self.labels[c] for c in classes),
                scores={label: float(p) for label, p in zip(self.labels, row.tolist(), strict=True)},
                text_pair=example.text_pair,
                source=example.source,
            )
            for example, classes, row in zip(data.examples, chosen, probabilities, strict=True)
        ]

    def threshold_array(self) -> NDArray[np.float32]:
        """(C,)."""
        return np.array(self.thresholds or [DEFAULT_THRESHOLD] * len(self.labels), np.float32)

    def with_thresholds(self, thresholds: NDArray[np.float32]) -> ClassificationTask:
        return replace(self, thresholds=tuple(float(t) for t in thresholds))

    def new_metrics(self) -> ClassMetrics | MultiLabelMetrics:
        return MultiLabelMetrics(self.labels) if self.multi_label else ClassMetrics(self.labels)
