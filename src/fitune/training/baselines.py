"""What a linear model reaches on the same split, by the same scorer: the line that a paid hour must beat. No torch.

Classification: TF-IDF of character 1-3-grams and a linear SVM (Wang & Manning 2012 and many since). Entities: a
linear-chain CRF over characters with a window of five characters (L-BFGS, L1 and L2).
"""

from __future__ import annotations

import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fitune.data import flatten, spans_to_tags, tags_to_spans
from fitune.messages import _
from fitune.tasks import ClassMetrics, EntityMetrics, MultiLabelMetrics
from fitune.training.splits import Splits, read_splits
from fitune.values import Example, Job, Refusal, Span

__all__ = ["baseline", "baseline_of"]

CRF_ITERATIONS = 80
"""L-BFGS steps at most; later ones move the score by tenths."""

Listener = Callable[[int, int], None]
"""Called with (steps done, steps at most)."""


def baseline(job: Job, listener: Listener | None = None) -> dict[str, dict[str, float]]:
    """Read the job's files, fit the linear model, score it: split ("dev", "test") -> metric -> fraction.

    Raises Refusal when a file cannot be read or a package is missing.
    """
    splits = read_splits(job)
    task = job.task or splits.rows.task
    if task is None:
        raise Refusal(
            _("it holds texts without labels, so there is nothing to learn"),
            where=job.train,
            next_step=_("Name the column of the labels with --label-column, or the format with --format."),
            code="FT131",
        )
    multi_label = bool(splits.rows.multi_label if job.multi_label is None else job.multi_label)
    return baseline_of(splits, task, multi_label=multi_label and task != "ner", listener=listener)


def baseline_of(
    splits: Splits,
    task: Literal["ner", "classification"],
    *,
    multi_label: bool = False,
    listener: Listener | None = None,
) -> dict[str, dict[str, float]]:
    """The same on rows that are already read."""
    parts = {"dev": splits.dev, **({"test": splits.test} if splits.test else {})}
    if task == "ner":
        _require("pycrfsuite", "python-crfsuite")
        return _entities(splits.train, parts, splits.labels, listener)
    _require("sklearn", "scikit-learn")
    return _classes(splits.train, parts, splits.labels, multi_label=multi_label)


def _require(module: str, package: str) -> None:
    if find_spec(module) is None:
        raise Refusal(
            _("the linear baseline needs the package {package}, which is not installed", package=package),
            next_step=_("Type: {command}", command="pip install " + package),
            code="FT401",
        )


def _classes(
    train: Sequence[Example], parts: dict[str, list[Example]], labels: tuple[str, ...], *, multi_label: bool
) -> dict[str, dict[str, float]]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC

    vectorizer: Any = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=2, sublinear_tf=True)
    texts = [text for example in train for text in (example.text, example.text_pair) if text]
    try:
        vectorizer.fit(texts)
    except ValueError:  # so few rows that no n-gram stands in two of them
        vectorizer.set_params(min_df=1).fit(texts)
    gold = _indicators(train, labels)
    features = _features(vectorizer, train)
    if multi_label:
        # One yes/no question a class; a class that has no example, or no counter-example, needs no model.
        columns = [
            LinearSVC(random_state=0).fit(features, column) if 0 < column.sum() < len(train) else float(column[0])
            for column in gold.T
        ]
        return {split: _score_many(columns, _features(vectorizer, rows), rows, labels) for split, rows in parts.items()}
    numbers = gold.argmax(1)
    present = np.unique(numbers)
    model = LinearSVC(random_state=0).fit(features, numbers) if len(present) > 1 else None
    scores: dict[str, dict[str, float]] = {}
    for split, rows in parts.items():
        counts = ClassMetrics(labels)
        guessed = model.predict(_features(vectorizer, rows)) if model else np.full(len(rows), present[0])
        counts.update(_indicators(rows, labels).argmax(1), np.asarray(guessed, dtype=np.int64))
        scores[split] = counts.metrics()
    return scores


def _indicators(rows: Sequence[Example], labels: tuple[str, ...]) -> NDArray[np.bool_]:
    """[rows, classes]: does the row have the label?"""
    number = {label: index for index, label in enumerate(labels)}
    marked = np.zeros((len(rows), len(labels)), dtype=np.bool_)
    for index, example in enumerate(rows):
        marked[index, [number[label] for label in example.labels or ()]] = True
    return marked


def _features(vectorizer: Any, rows: Sequence[Example]) -> Any:
    """Sparse [rows, n-grams]; of a pair: first text, second text, and what both have."""
    first = vectorizer.transform([example.text for example in rows])
    if not any(example.text_pair for example in rows):
        return first
    from scipy.sparse import hstack

    second = vectorizer.transform([example.text_pair or "" for example in rows])
    return hstack([first, second, first.multiply(second)], format="csr")


def _score_many(
    columns: Sequence[Any], features: Any, rows: Sequence[Example], labels: tuple[str, ...]
) -> dict[str, float]:
    counts = MultiLabelMetrics(labels)
    chosen = np.stack(
        [
            np.full(len(rows), column) if isinstance(column, float) else column.decision_function(features) > 0
            for column in columns
        ],
        axis=1,
    ).astype(np.float32)
    counts.update(_indicators(rows, labels), chosen, np.full(len(labels), 0.5, dtype=np.float32))
    return counts.metrics()


def _entities(
    train: Sequence[Example], parts: dict[str, list[Example]], labels: tuple[str, ...], listener: Listener | None
) -> dict[str, dict[str, float]]:
    import pycrfsuite

    crf: Any = pycrfsuite

    class Trainer(crf.Trainer):
        """Tells the listener of each iteration instead of printing."""

        def message(self, message: str) -> None:
            if self.logparser.feed(message) == "iteration" and listener:
                listener(int(self.logparser.last_iteration["num"]), CRF_ITERATIONS)

    trainer: Any = Trainer(algorithm="lbfgs")
    for example in train:
        kept, _nested = flatten(example.spans or ())
        trainer.append(list(_character_features(example.text)), spans_to_tags(kept, len(example.text), "BIO"))
    trainer.set_params({"c1": 0.1, "c2": 0.01, "max_iterations": CRF_ITERATIONS})
    with tempfile.TemporaryDirectory(prefix="fitune-baseline-") as folder:
        path = str(Path(folder) / "crf")
        trainer.train(path)
        tagger = crf.Tagger()
        tagger.open(path)
        scores: dict[str, dict[str, float]] = {}
        for split, rows in parts.items():
            counts = EntityMetrics(labels)
            for example in rows:
                counts.update(flatten(example.spans or ())[0], _tag(tagger, example.text))
            scores[split] = counts.metrics()
        tagger.close()
    return scores


def _tag(tagger: Any, text: str) -> tuple[Span, ...]:
    return tags_to_spans(tagger.tag(list(_character_features(text))), "BIO") if text else ()


def _character_features(text: str) -> Iterator[list[str]]:
    """Of every character: its neighbours up to two away, the pairs and triples they form, and their kinds."""
    around = (
        ["<2", "<1", *text.lower(), ">1", ">2"] if len(text.lower()) == len(text) else ["<2", "<1", *text, ">1", ">2"]
    )
    kinds = [_kind(character) for character in around]
    for at in range(2, len(text) + 2):
        before, two_before, here, after, two_after = (
            around[at - 1],
            around[at - 2],
            around[at],
            around[at + 1],
            around[at + 2],
        )
        yield [
            "bias",
            f"0={here}",
            f"-1={before}",
            f"-2={two_before}",
            f"+1={after}",
            f"+2={two_after}",
            f"-1,0={before}{here}",
            f"0,+1={here}{after}",
            f"-2,-1={two_before}{before}",
            f"+1,+2={after}{two_after}",
            f"-1,+1={before}{after}",
            f"-1..+1={before}{here}{after}",
            f"kind={kinds[at]}",
            f"kinds={kinds[at - 1]}{kinds[at]}{kinds[at + 1]}",
        ]


def _kind(character: str) -> str:
    """One letter: edge, digit, Latin letter, punctuation or symbol, space, or anything else (Han)."""
    if len(character) > 1:
        return "e"
    if character.isdigit():
        return "d"
    if character.isascii() and character.isalpha():
        return "a"
    return {"P": "p", "S": "p", "Z": "s"}.get(unicodedata.category(character)[0], "h")
