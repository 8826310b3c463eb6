"""Scoring a split as a stream: chunks of examples, batches of like length, counts kept and logits dropped.

Memory does not grow with the rows. The same stream serves evaluation and prediction.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fitune.hf import batches_by_length
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
    """Predictions of examples [first, first + len(predictions)), and the loss of each (NaN without gold)."""

    first: int
    predictions: list[Prediction]
    losses: NDArray[np.float64]
    probabilities: NDArray[np.float32] | None
    """Classification: (E, C)."""


def score(
    task: Task, learner: Learner, data: SplitData, *, device: torch.device | str, token_budget: int = EVALUATION_TOKENS
) -> Iterator[Scored]:
    """Predict a split chunk by chunk, in the order of its examples, in inference mode."""
    was_training = learner.training
    learner.eval()
    try:
        with torch.inference_mode():
            for first in range(0, len(data), CHUNK_EXAMPLES):
                yield _score_chunk(task, learner, data, first, min(first + CHUNK_EXAMPLES, len(data)), device, token_budget)
    finally:
        learner.train(was_training)


def _score_chunk(
    task: Task, learner: Learner, data: SplitData, first: int, last: int, device: torch.device | str, token_budget: int
) -> Scored:
    columns = data.columns
    begin, end = int(columns.example_starts_E1[first]), int(columns.example_starts_E1[last])
    losses_W = np.zeros(end - begin, np.float64)
    offset = int(columns.starts_W1[begin])
    tokens = int(columns.starts_W1[end]) - offset
    tags_T, scores_T = np.zeros(tokens, np.int64), np.zeros(tokens, np.float32)
    logits_W = np.zeros((end - begin, 0 if isinstance(task, NerTask) else len(task.classes)), np.float32)
    for rows in batches_by_length(columns.lengths_W[begin:end], token_budget):
        batch = {name: value.to(device) for name, value in columns.collate(rows + begin).items()}
        labels, weights = batch.pop("labels", None), batch.pop("weights", None)
        _loss, logits = learner(**batch)
        if labels is not None:
            losses_W[rows] = learner.window_losses(logits, labels, weights).cpu().numpy()
        if isinstance(task, NerTask):
            tags, scores = (t.cpu().numpy() for t in task.read_out(learner, logits, batch))
            present = np.arange(tags.shape[1]) < columns.lengths_W[rows + begin][:, None]
            at = (columns.starts_W1[rows + begin] - offset)[:, None] + np.arange(tags.shape[1])
            tags_T[at[present]], scores_T[at[present]] = tags[present], scores[present]
        else:
            logits_W[rows] = logits.cpu().numpy()
    window_example = data.windows.example[begin:end].astype(np.int64) - first
    losses = np.bincount(window_example, losses_W, last - first)
    if isinstance(task, NerTask):
        return Scored(first, task.predict(data, first, last, tags_T, scores_T), losses, None)
    probabilities = task.probabilities(logits_W, window_example)
    return Scored(first, task.predict(data, first, last, probabilities), losses, probabilities)


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

    def update(self, data: SplitData, scored: Scored) -> None:
        """Count a chunk; examples without gold are left out."""
        examples = data.examples[scored.first : scored.first + len(scored.predictions)]
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
        entry = (loss if np.isfinite(loss) else 0.0, -self.errors_total - len(self._worst), case)
        if len(self._worst) < WORST_ERRORS:
            heapq.heappush(self._worst, entry)
        elif entry[:2] > self._worst[0][:2]:
            heapq.heapreplace(self._worst, entry)

    def result(self, weight: float) -> dict[str, float]:
        """The task's metrics and "loss", the mean over ``weight``. Multi-label figures are at the best thresholds."""
        figures = self.metrics.metrics()
        if isinstance(self.metrics, MultiLabelMetrics) and isinstance(self.task, ClassificationTask):
            if not self.task.thresholds:
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

    def __init__(self, task: Task, data: SplitData, *, token_budget: int = EVALUATION_TOKENS) -> None:
        self.task, self.data, self.token_budget = task, data, token_budget

    def __len__(self) -> int:
        return len(self.data)

    def evaluate(self, learner: Learner, device: torch.device | str) -> dict[str, float]:
        """The task's metrics and the loss."""
        return self.tally(learner, device).result(self.weight)

    @property
    def weight(self) -> float:
        """What the summed loss is divided by."""
        return float(self.data.columns.weights_W.sum())

    def tally(
        self,
        learner: Learner,
        device: torch.device | str,
        *,
        keep_errors: bool = False,
        watch: Callable[[Scored], None] | None = None,
    ) -> Tally:
        """Score the split; ``watch`` sees every chunk (to write predictions)."""
        tally = Tally(self.task, self.task.new_metrics(), keep_errors)
        for scored in score(self.task, learner, self.data, device=device, token_budget=self.token_budget):
            tally.update(self.data, scored)
            if watch is not None:
                watch(scored)
        return tally
