"""The figures equal seqeval's strict mode, conlleval's, and scikit-learn's."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.data import tags_to_spans
from fitune.tasks.metrics import ClassMetrics, EntityMetrics, MultiLabelMetrics
from fitune.values import Span

TYPES = ("PER", "LOC", "ORG")


@st.composite
def well_formed(draw: st.DrawFn, length: int) -> list[str]:
    """A BIO sequence in which every I follows its own B or I."""
    tags: list[str] = []
    for _position in range(length):
        choices = ["O", *(f"B-{t}" for t in TYPES)]
        if tags and tags[-1] != "O":
            choices += [f"I-{tags[-1][2:]}"] * 3
        tags.append(draw(st.sampled_from(choices)))
    return tags


@st.composite
def sequences(draw: st.DrawFn) -> list[tuple[list[str], list[str]]]:
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    return [(draw(well_formed(n)), draw(well_formed(n))) for n in lengths]


def conlleval(pairs: list[tuple[list[str], list[str]]]) -> tuple[int, int, int]:
    """(correct, gold, guessed) chunks, written from the rules of the CoNLL-2000 script, one token at a time."""

    def ends(before: str, after: str, type_before: str, type_after: str) -> bool:
        return before in "BI" and (after in "BO" or type_before != type_after)

    def starts(before: str, after: str, type_before: str, type_after: str) -> bool:
        return after == "B" or (after == "I" and (before == "O" or type_before != type_after))

    correct = gold_chunks = guessed_chunks = 0
    for gold, guessed in pairs:
        inside = False
        g_before, p_before = ("O", ""), ("O", "")
        for g_tag, p_tag in zip([*gold, "O"], [*guessed, "O"], strict=True):
            g, p = (g_tag[0], g_tag[2:]), (p_tag[0], p_tag[2:])
            if inside:
                g_end, p_end = ends(g_before[0], g[0], g_before[1], g[1]), ends(p_before[0], p[0], p_before[1], p[1])
                if g_end and p_end and g_before[1] == p_before[1]:
                    inside = False
                    correct += 1
                elif g_end != p_end or g[1] != p[1]:
                    inside = False
            g_start, p_start = (
                starts(g_before[0], g[0], g_before[1], g[1]),
                starts(p_before[0], p[0], p_before[1], p[1]),
            )
            inside = inside or (g_start and p_start and g[1] == p[1])
            gold_chunks += g_start
            guessed_chunks += p_start
            g_before, p_before = g, p
    return correct, gold_chunks, guessed_chunks


@settings(max_examples=60, deadline=None)
@given(sequences())
def test_entities_equal_seqeval_and_conlleval(pairs: list[tuple[list[str], list[str]]]) -> None:
    from seqeval.metrics.v1 import precision_recall_fscore_support
    from seqeval.scheme import IOB2

    metrics = EntityMetrics(TYPES)
    for gold, predicted in pairs:
        metrics.update(tags_to_spans(gold, "BIO"), tags_to_spans(predicted, "BIO"))
    ours = metrics.metrics()
    golds, predictions = [g for g, _p in pairs], [p for _g, p in pairs]
    options: Any = {"mode": "strict", "scheme": IOB2, "zero_division": 0}
    if any(tag != "O" for tags in golds + predictions for tag in tags):
        for average, prefix in (("micro", ""), ("macro", "macro_")):
            expected = precision_recall_fscore_support(golds, predictions, average=average, **options)
            found = [ours[f"{prefix}{name}"] for name in ("precision", "recall", "f1")]
            assert found == pytest.approx([float(x) for x in expected[:3]])
    correct, gold_chunks, guessed_chunks = conlleval(pairs)
    scores = metrics.per_label()
    assert sum(s.correct for s in scores) == correct
    assert sum(s.gold for s in scores) == gold_chunks
    assert sum(s.predicted for s in scores) == guessed_chunks


def test_per_type_and_confusion() -> None:
    metrics = EntityMetrics(TYPES)
    assert not metrics.update(
        [Span(0, 2, "PER"), Span(3, 5, "LOC"), Span(6, 7, "ORG")],
        [Span(0, 2, "PER"), Span(3, 5, "ORG"), Span(8, 9, "ORG")],
    )
    assert metrics.update([Span(0, 1, "LOC")], [Span(0, 1, "LOC")])
    per, loc, org = metrics.per_label()
    assert (per.correct, per.gold, per.predicted) == (1, 1, 1)
    assert (loc.correct, loc.gold, loc.predicted) == (1, 2, 1)
    assert (org.correct, org.gold, org.predicted) == (0, 1, 2)
    confusion = metrics.confusion()
    assert confusion.labels == (*TYPES, "")
    assert confusion.counts == ((1, 0, 0, 0), (0, 1, 1, 0), (0, 0, 0, 1), (0, 0, 1, 0))


def test_a_label_that_was_never_announced_is_counted() -> None:
    metrics = EntityMetrics(["PER"])
    metrics.update([Span(0, 1, "NEW")], [])
    assert metrics.metrics()["recall"] == 0.0
    assert [s.label for s in metrics.per_label()] == ["PER", "NEW"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_classes_equal_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

    gold, predicted = (np.array(column) for column in zip(*pairs, strict=True))
    metrics = ClassMetrics(("a", "b", "c", "d"))
    for start in range(0, len(gold), 7):
        metrics.update(gold[start : start + 7], predicted[start : start + 7])
    ours = metrics.metrics()
    expected = precision_recall_fscore_support(gold, predicted, average="macro", zero_division=0)
    assert [ours[f"macro_{n}"] for n in ("precision", "recall", "f1")] == pytest.approx(
        [float(x) for x in expected[:3]]
    )
    assert ours["accuracy"] == pytest.approx(accuracy_score(gold, predicted))
    assert np.array(metrics.confusion().counts).tolist() == confusion_matrix(gold, predicted, labels=range(4)).tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_multi_label_equals_scikit_learn_and_tunes_thresholds(seed: int, rows: int) -> None:
    from sklearn.metrics import f1_score, precision_recall_fscore_support

    rng = np.random.default_rng(seed)
    gold = rng.random((rows, 3)) < [0.5, 0.1, 0.9]
    probabilities = np.clip(gold * 0.3 + rng.random((rows, 3)) * 0.6, 0, 1).astype(np.float32)
    thresholds = np.array([0.5, 0.25, 0.75], np.float32)
    metrics = MultiLabelMetrics(("a", "b", "c"))
    for start in range(0, rows, 11):
        metrics.update(gold[start : start + 11], probabilities[start : start + 11], thresholds)
    predicted = probabilities >= thresholds
    ours = metrics.metrics()
    for average, prefix in (("micro", ""), ("macro", "macro_")):
        expected = precision_recall_fscore_support(gold, predicted, average=average, zero_division=0)
        found = [ours[f"{prefix}{name}"] for name in ("precision", "recall", "f1")]
        assert found == pytest.approx([float(x) for x in expected[:3]])
    assert ours["accuracy"] == pytest.approx(float((gold == predicted).all(1).mean()))
    # The best threshold on the grid is at least as good as any other on the grid.
    best = metrics.best_thresholds()
    tuned = metrics.metrics_at_best_thresholds()
    for column in range(3):
        if not gold[:, column].any():
            assert best[column] == 0.5
            continue
        bins = np.minimum((probabilities[:, column] * 1000).astype(int), 999)
        scores = [f1_score(gold[:, column], bins >= t, zero_division=0) for t in range(0, 1000, 25)]
        assert tuned["macro_f1"] >= 0
        chosen = f1_score(gold[:, column], bins >= round(float(best[column]) * 1000), zero_division=0)
        assert chosen >= max(scores) - 1e-9
