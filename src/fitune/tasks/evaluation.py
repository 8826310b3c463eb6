"""Scoring a split as a stream: chunks of examples, batches of like length, counts kept and logits dropped.

Memory does not grow with the rows. The same stream serves evaluation and prediction.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fitune.data import Encoder
from fitune.hf import to_device
from fitune.microbatch import Budget, Sweep
from fitune.runs import WORST_ERRORS, ErrorCase, SplitEvaluation
from fitune.tasks.classification import ClassificationTask
from fitune.tasks.learner import Learner
from fitune.tasks.metrics import ClassMetrics, EntityMetrics, MultiLabelMetrics
from fitune.tasks.ner import NerTask
from fitune.tasks.split import SplitData
from fitune.values import Example, Prediction

Task = NerTask | ClassificationTask

CHUNK_EXAMPLES = 4096
"""Examples whose predictions are held at once."""

EVALUATION_TOKENS = 4096
"""Padded tokens in a forward pass without gradients, unless a Fit says less."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Predictions of a split's examples, and the summed loss of each (0 without gold)."""

    predictions: list[Prediction]
    losses: NDArray[np.float64]
    probabilities: NDArray[np.float32] | None
    """Classification: (E, C)."""


def new_sweep(device: torch.device | str, tokens: int = EVALUATION_TOKENS) -> Sweep:
    """Passes without gradients of at most so many padded tokens; fewer when the device has no room for them."""
    return Sweep(Budget(tokens=tokens), device)


def encode_parts(
    task: Task, examples: Sequence[Example], encoder: Encoder, *, class_weights: NDArray[np.float64] | None = None
) -> list[SplitData]:
    """A split in parts of CHUNK_EXAMPLES examples, each with its windows."""
    return [
        task.encode(examples[first : first + CHUNK_EXAMPLES], encoder, class_weights=class_weights)
        for first in range(0, len(examples), CHUNK_EXAMPLES)
    ]


def score(
    task: Task,
    learner: Learner,
    data: SplitData,
    *,
    sweep: Sweep | None = None,
    span_scores: bool = False,
) -> Scored:
    """Predict a part, in inference mode, in batches of windows of like length.

    Args:
        sweep: how much a forward pass holds; it learns from out-of-memory, so keep it from part to part.
        span_scores: give entities their probabilities; a CRF's take as long again as its decoding.
    """
    device = next(learner.parameters()).device
    was_training = learner.training
    learner.eval()
    try:
        with torch.inference_mode():
            return _score(task, learner, data, device, sweep or new_sweep(device), span_scores)
    finally:
        learner.train(was_training)


def _score(
    task: Task, learner: Learner, data: SplitData, device: torch.device, sweep: Sweep, span_scores: bool
) -> Scored:
    columns = data.columns
    lengths, tokens = columns.lengths_W, len(columns.ids_T)
    losses_W = np.zeros(len(lengths), np.float64)
    tags_T = np.zeros(tokens, np.int64)
    scores_T = np.zeros(tokens, np.float32) if span_scores else None
    logits_W = np.zeros((len(lengths), 0 if isinstance(task, NerTask) else len(task.classes)), np.float32)

    def run(indices: Sequence[int]) -> tuple[Tensor | None, Tensor, Tensor | None]:
        """Losses of the windows; logits (B, C), or classes (B, L) with their probabilities."""
        batch = to_device(columns.collate(np.asarray(indices)), device)
        labels, weights = batch.pop("labels", None), batch.pop("weights", None)
        _loss, logits = learner(**batch)
        losses = None if labels is None else learner.window_losses(logits, labels, weights).cpu()
        if not isinstance(task, NerTask):
            return losses, logits.cpu(), None
        tags, scores = task.read_out(learner, logits, batch, scores=span_scores)
        return losses, tags.cpu(), None if scores is None else scores.cpu()

    for piece, (losses, found, scores) in sweep.over(run, lengths.tolist()):
        rows = np.asarray(piece.indices)
        if losses is not None:
            losses_W[rows] = losses.numpy()
        if not isinstance(task, NerTask):
            logits_W[rows] = found.numpy()
            continue
        present = np.arange(found.shape[1]) < lengths[rows][:, None]
        at = (columns.starts_W1[rows][:, None] + np.arange(found.shape[1]))[present]
        tags_T[at] = found.numpy()[present]
        if scores_T is not None and scores is not None:
            scores_T[at] = scores.numpy()[present]
    losses = np.bincount(data.windows.example, losses_W, len(data)).astype(np.float64)
    if isinstance(task, NerTask):
        return Scored(task.predict(data, tags_T, scores_T), losses, None)
    probabilities = task.probabilities(logits_W, data.windows.example.astype(np.int64))
    return Scored(task.predict(data, probabilities), losses, probabilities)


@dataclass
class Tally:
    """What is kept of an evaluation: counts, the summed loss, and the worst errors."""

    task: Task
    metrics: EntityMetrics | ClassMetrics | MultiLabelMetrics
    keep_errors: bool = False
    rows: int = 0
    loss_sum: float = 0.0
    weight: float = 0.0
    errors_total: int = 0
    _worst: list[tuple[float, int, ErrorCase]] = field(default_factory=list)
    _kept: int = 0

    def update_rows(self, examples: Sequence[Example], scored: Scored, rows: NDArray[np.bool_]) -> None:
        """Count some rows of a part."""
        chosen = np.flatnonzero(rows).tolist()
        probabilities = None if scored.probabilities is None else scored.probabilities[chosen]
        part = Scored([scored.predictions[i] for i in chosen], scored.losses[chosen], probabilities)
        self.update([examples[i] for i in chosen], part)

    def update(self, examples: Sequence[Example], scored: Scored) -> None:
        """Count a part; every example needs gold."""
        wrong = self._count(examples, scored)
        if self.keep_errors:
            for row, example in enumerate(examples):
                if wrong[row]:
                    self._keep(example, scored.predictions[row], float(scored.losses[row]))
        self.errors_total += int(wrong.sum())
        self.rows += len(examples)
        self.loss_sum += float(scored.losses.sum())

    def _count(self, examples: Any, scored: Scored) -> NDArray[np.bool_]:
        """Feed the metrics; which examples are wrong."""
        if isinstance(self.metrics, EntityMetrics):
            pairs = zip(examples, scored.predictions, strict=True)
            return np.array([not self.metrics.update(e.spans or (), p.spans or ()) for e, p in pairs], np.bool_)
        assert isinstance(self.task, ClassificationTask)
        assert scored.probabilities is not None
        number_of = {label: number for number, label in enumerate(self.task.labels)}
        if isinstance(self.metrics, ClassMetrics):
            gold = np.array([number_of[e.labels[0]] for e in examples], np.int64)
            predicted = scored.probabilities.argmax(-1)
            self.metrics.update(gold, predicted)
            return gold != predicted
        wanted = np.zeros(scored.probabilities.shape, np.bool_)
        for row, example in enumerate(examples):
            wanted[row, [number_of[label] for label in example.labels]] = True
        thresholds = self.task.threshold_array()
        self.metrics.update(wanted, scored.probabilities, thresholds)
        return (wanted != (scored.probabilities >= thresholds)).any(1)

    def _keep(self, example: Example, prediction: Prediction, loss: float) -> None:
        case = ErrorCase(
            text=example.text,
            text_pair=example.text_pair,
            gold_spans=example.spans or (),
            predicted_spans=prediction.spans or (),
            gold_labels=example.labels or (),
            predicted_labels=prediction.labels or (),
            source=str(example.source or ""),
            loss=loss if np.isfinite(loss) else None,
        )
        # The order of arrival settles ties, so that two cases are never compared.
        self._kept += 1
        entry = (loss if np.isfinite(loss) else 0.0, -self._kept, case)
        if len(self._worst) < WORST_ERRORS:
            heapq.heappush(self._worst, entry)
        elif entry[:2] > self._worst[0][:2]:
            heapq.heapreplace(self._worst, entry)

    def result(self, weight: float) -> dict[str, float]:
        """The task's metrics and "loss", the mean over ``weight``. Multi-label figures are at the best thresholds."""
        figures = self.metrics.metrics()
        untuned = isinstance(self.task, ClassificationTask) and not self.task.thresholds
        if isinstance(self.metrics, MultiLabelMetrics) and untuned:
            figures |= self.metrics.metrics_at_best_thresholds()
        return {**figures, "loss": self.loss_sum / weight if weight else 0.0}

    def split_evaluation(self, weight: float) -> SplitEvaluation:
        """For the report."""
        worst = sorted(self._worst, key=lambda entry: (-entry[0], -entry[1]))
        return SplitEvaluation(
            rows=self.rows,
            metrics=self.result(weight),
            per_label=self.metrics.per_label(),
            confusion=None if isinstance(self.metrics, MultiLabelMetrics) else self.metrics.confusion(),
            errors=tuple(case for _loss, _order, case in worst),
            errors_total=self.errors_total,
        )


class Evaluator:
    """A split that evaluates itself: what ``hf.Trainer`` takes as its evaluation dataset."""

    def __init__(self, task: Task, parts: Sequence[SplitData]) -> None:
        self.task, self.parts = task, parts
        self._sweep: Sweep | None = None

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def evaluate(self, learner: Learner, device: torch.device | str) -> dict[str, float]:
        """The task's metrics and the loss."""
        return self.tally(learner).result(self.weight)

    @property
    def weight(self) -> float:
        """What the summed loss is divided by."""
        return float(sum(part.columns.weights_W.sum() for part in self.parts))

    def tally(
        self,
        learner: Learner,
        *,
        keep_errors: bool = False,
        watch: Callable[[SplitData, Scored], None] | None = None,
    ) -> Tally:
        """Score the split; ``watch`` sees every part (to write predictions)."""
        self._sweep = self._sweep or new_sweep(next(learner.parameters()).device)
        tally = Tally(self.task, self.task.new_metrics(), keep_errors)
        for part in self.parts:
            scored = score(self.task, learner, part, sweep=self._sweep, span_scores=watch is not None)
            tally.update(part.examples, scored)
            if watch is not None:
                watch(part, scored)
        return tally
