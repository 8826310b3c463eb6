"""Scores that accumulate: counts are kept, never logits, so memory does not grow with the rows. No torch.

Entities count when label, start and end are all exact (CoNLL-2003, Tjong Kim Sang & De Meulder 2003); on well-formed
tags the figures equal seqeval's strict IOB2 mode and conlleval's. Classification equals scikit-learn's with
``zero_division=0``. All scores are fractions in [0, 1].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fitune.runs import Confusion, LabelScores
from fitune.values import Span

NER_METRICS = ("precision", "recall", "f1", "macro_precision", "macro_recall", "macro_f1")
SINGLE_LABEL_METRICS = ("accuracy", "macro_precision", "macro_recall", "macro_f1")
MULTI_LABEL_METRICS = ("accuracy", *NER_METRICS)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def f1_score(correct: float, gold: float, predicted: float) -> float:
    """Harmonic mean of ``correct / predicted`` and ``correct / gold``; 0 where undefined."""
    return _ratio(2 * correct, gold + predicted)


def _label_scores(label: str, gold: int, predicted: int, correct: int) -> LabelScores:
    return LabelScores(
        label=label,
        precision=_ratio(correct, predicted),
        recall=_ratio(correct, gold),
        f1=f1_score(correct, gold, predicted),
        gold=gold,
        predicted=predicted,
        correct=correct,
    )


def _summary(scores: Sequence[LabelScores], counted: Sequence[LabelScores]) -> dict[str, float]:
    """Micro over ``scores``; macro over ``counted``."""
    gold, predicted, correct = (sum(getattr(s, name) for s in scores) for name in ("gold", "predicted", "correct"))
    macro = max(1, len(counted))
    return {
        "precision": _ratio(correct, predicted),
        "recall": _ratio(correct, gold),
        "f1": f1_score(correct, gold, predicted),
        "macro_precision": sum(s.precision for s in counted) / macro,
        "macro_recall": sum(s.recall for s in counted) / macro,
        "macro_f1": sum(s.f1 for s in counted) / macro,
    }


class EntityMetrics:
    """Strict entity-level precision, recall and F1: per type, micro and macro (over types that occur)."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self._pairs: Counter[tuple[str, str]] = Counter()

    def update(self, gold: Iterable[Span], predicted: Iterable[Span]) -> bool:
        """Count one example; True when it is entirely right.

        An exact span with another label counts as one confusion; the rest is missed or invented ("").
        """
        gold_at = {(s.start, s.end, s.label) for s in gold}
        predicted_at = {(s.start, s.end, s.label) for s in predicted}
        right = gold_at & predicted_at
        for _start, _end, label in right:
            self._pairs[label, label] += 1
        if len(right) == len(gold_at) == len(predicted_at):
            return True
        invented: dict[tuple[int, int], list[str]] = {}
        for start, end, label in sorted(predicted_at - right):
            invented.setdefault((start, end), []).append(label)
        for start, end, label in sorted(gold_at - right):
            others = invented.get((start, end))
            self._pairs[label, others.pop(0) if others else ""] += 1
        for others in invented.values():
            for label in others:
                self._pairs["", label] += 1
        return False

    def _all_labels(self) -> list[str]:
        seen = {label for pair in self._pairs for label in pair if label}
        return [*self.labels, *sorted(seen - set(self.labels))]

    def per_label(self) -> tuple[LabelScores, ...]:
        gold: Counter[str] = Counter()
        predicted: Counter[str] = Counter()
        for (gold_label, predicted_label), count in self._pairs.items():
            gold[gold_label] += count
            predicted[predicted_label] += count
        return tuple(
            _label_scores(label, gold[label], predicted[label], self._pairs[label, label])
            for label in self._all_labels()
        )

    def metrics(self) -> dict[str, float]:
        """The NER_METRICS."""
        scores = self.per_label()
        return _summary(scores, [s for s in scores if s.gold or s.predicted])

    def confusion(self) -> Confusion:
        """Exact spans by label; the last row and column are "nothing there"."""
        labels = (*self._all_labels(), "")
        return Confusion(
            labels=labels, counts=tuple(tuple(self._pairs[row, column] for column in labels) for row in labels)
        )


class ClassMetrics:
    """Accuracy, macro figures, per-class figures and confusion matrix of single-label classification."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self._counts: NDArray[np.int64] = np.zeros((len(labels), len(labels)), dtype=np.int64)

    def update(self, gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> None:
        """Class numbers of a batch, shape (E,) each."""
        np.add.at(self._counts, (gold, predicted), 1)

    def per_label(self) -> tuple[LabelScores, ...]:
        gold, predicted, correct = self._counts.sum(1), self._counts.sum(0), self._counts.diagonal()
        return tuple(
            _label_scores(label, int(gold[i]), int(predicted[i]), int(correct[i]))
            for i, label in enumerate(self.labels)
        )

    def metrics(self) -> dict[str, float]:
        """The SINGLE_LABEL_METRICS; macro over classes that occur in gold or predictions, as scikit-learn does."""
        scores = self.per_label()
        summary = _summary(scores, [s for s in scores if s.gold or s.predicted])
        accuracy = _ratio(int(self._counts.diagonal().sum()), int(self._counts.sum()))
        return {"accuracy": accuracy, **{name: summary[name] for name in SINGLE_LABEL_METRICS[1:]}}

    def confusion(self) -> Confusion:
        return Confusion(labels=self.labels, counts=tuple(tuple(int(n) for n in row) for row in self._counts))


class MultiLabelMetrics:
    """Exact-match accuracy, micro and macro (over all classes) figures of multi-label classification.

    Probabilities are kept as two histograms a class (gold and not gold), so that thresholds can be chosen afterwards.
    """

    BINS = 1000

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        classes = len(labels)
        self._gold, self._predicted, self._correct = (np.zeros(classes, dtype=np.int64) for _ in range(3))
        self._rows = self._exact = 0
        self._histogram = np.zeros((2, classes, self.BINS), dtype=np.int64)

    def update(
        self, gold: NDArray[np.bool_], probabilities: NDArray[np.float32], thresholds: NDArray[np.float32]
    ) -> None:
        """A batch: gold and probabilities of shape (E, C), thresholds of shape (C,)."""
        predicted = probabilities >= thresholds
        self._gold += gold.sum(0)
        self._predicted += predicted.sum(0)
        self._correct += (gold & predicted).sum(0)
        self._rows += len(gold)
        self._exact += int((gold == predicted).all(1).sum())
        bins = np.minimum((probabilities * self.BINS).astype(np.int64), self.BINS - 1)
        classes = np.broadcast_to(np.arange(len(self.labels)), bins.shape)
        np.add.at(self._histogram, (gold.astype(np.int64), classes, bins), 1)

    def per_label(self) -> tuple[LabelScores, ...]:
        return tuple(
            _label_scores(label, int(self._gold[i]), int(self._predicted[i]), int(self._correct[i]))
            for i, label in enumerate(self.labels)
        )

    def metrics(self) -> dict[str, float]:
        """The MULTI_LABEL_METRICS."""
        scores = self.per_label()
        return {"accuracy": _ratio(self._exact, self._rows), **_summary(scores, scores)}

    def metrics_at_best_thresholds(self) -> dict[str, float]:
        """The same as if ``best_thresholds`` had been in use; without "accuracy", which counts whole rows."""
        at = np.rint(self.best_thresholds() * self.BINS).astype(np.int64)
        above = [[int(self._histogram[side, c, at[c] :].sum()) for c in range(len(at))] for side in (0, 1)]
        gold = self._histogram[1].sum(-1)
        scores = [
            _label_scores(label, int(gold[c]), above[0][c] + above[1][c], above[1][c])
            for c, label in enumerate(self.labels)
        ]
        return _summary(scores, scores)

    def best_thresholds(self) -> NDArray[np.float32]:
        """Per class the threshold with the best F1 on the rows seen, on a grid of 1/1000; shape (C,).

        Of thresholds that are equally good the one nearest to 0.5 is taken; a class without gold keeps 0.5.
        """
        negatives, positives = self._histogram[:, :, ::-1].cumsum(-1)[:, :, ::-1]
        gold = positives[:, :1]
        with np.errstate(invalid="ignore"):
            f1 = np.where(gold > 0, 2 * positives / np.maximum(gold + positives + negatives, 1), 0.0)
        grid = np.arange(self.BINS, dtype=np.float32) / self.BINS
        preference = f1 - 1e-9 * np.abs(grid - 0.5)
        return np.where(gold[:, 0] > 0, grid[preference.argmax(-1)], np.float32(0.5)).astype(np.float32)
