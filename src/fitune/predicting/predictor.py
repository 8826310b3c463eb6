"""Predictor: a trained model at work. The same windows, decoding and thresholds as in evaluation, by the same code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, overload

import torch

from fitune.data import Encoder
from fitune.messages import _
from fitune.microbatch import Sweep
from fitune.predicting.choosing import choose_engine
from fitune.predicting.chunks import STREAMED_EXAMPLES, chunks_of
from fitune.predicting.engines import load_engine
from fitune.predicting.workers import predict_with_workers
from fitune.tasks import encode_parts, read_settings, score
from fitune.tasks.evaluation import CHUNK_EXAMPLES, EVALUATION_TOKENS, new_sweep
from fitune.values import Example, Prediction, Refusal

__all__ = ["Predictor"]

SHOWN_EXAMPLES = 6

OTHER_ENGINES_TOKENS = 1024
"""Padded tokens in a pass of ONNX Runtime or CTranslate2: larger ones pad more and leave the caches (CTranslate2 int8
2,048: 9 % slower; bert-base, CLUENER lengths, one Zen 3 core)."""


class Predictor:
    """Predicts with the model of a run, of a model's folder or of an exported folder.

    Texts of any length are split into windows and merged again; nothing is dropped; order is kept.

    Args:
        run: a run's directory, its ``model`` folder, or what ``fitune export`` wrote.
        engine: ``torch``, ``onnx``, ``ctranslate2``, ``onnx-int8`` or ``ctranslate2-int8``; None: the fastest exact one
            that the run holds, as ``fitune export`` measured them on this machine; torch where nothing is exported.
        device: for torch; None: a CUDA device when there is one.
        span_scores: give entities their probabilities (for a CRF they take as long again as its decoding).

    Raises:
        Refusal: nothing usable there; the damaged or missing file is named.
    """

    def __init__(
        self, run: str | Path, *, engine: str | None = None, device: str | None = None, span_scores: bool = True
    ) -> None:
        self.folder = model_folder(run)
        self.run = Path(run)
        self.settings = read_settings(self.folder)
        self._device = device
        self.engine, folder = choose_engine(self.folder, engine, cuda=is_cuda(device))
        saved = load_engine(folder, self.engine, device)
        self.task, self._learner = saved.task, saved.learner
        self._encoder: Encoder = saved.encoder()
        self._span_scores = span_scores
        self._sweep: Sweep | None = None

    @overload
    def __call__(self, texts: str, text_pairs: str | None = None, /) -> Prediction: ...
    @overload
    def __call__(
        self, texts: list[str] | tuple[str, ...] | Sequence[Example], text_pairs: Sequence[str | None] | None = None, /
    ) -> list[Prediction]: ...
    def __call__(self, texts: Any, text_pairs: Any = None, /) -> Prediction | list[Prediction]:
        """One prediction for one text, a list for a list, in its order.

        Raises:
            Refusal: a model of pairs got a single text, or the other way round.
            ValueError: as many pairs as texts are needed.
        """
        if isinstance(texts, str):
            return self._predict([Example(texts, text_pair=text_pairs)])[0]
        if text_pairs is None:
            return self._predict([t if isinstance(t, Example) else Example(t) for t in texts])
        if len(texts) != len(text_pairs):
            raise ValueError(f"{len(texts)} texts but {len(text_pairs)} text_pairs")
        return self._predict([Example(text, text_pair=pair) for text, pair in zip(texts, text_pairs, strict=True)])

    def stream(self, examples: Iterable[Example | str], *, workers: int = 1) -> Iterator[Prediction]:
        """Predictions of any number of texts or examples, in their order, in constant memory.

        Args:
            workers: 2 or more: so many processes share the cores, each with a model of its own beside this one
                (``predict_with_workers`` does without this one).

        Raises:
            Refusal: a model of pairs got a single text, or the other way round; see ``predict_with_workers``.
        """
        rows = (Example(e) if isinstance(e, str) else e for e in examples)
        if workers > 1:
            refuse_workers_on_cuda(self._device, self.engine)
            yield from predict_with_workers(
                self.run,
                rows,
                workers=workers,
                engine=self.engine,
                device=self._device,
                span_scores=self._span_scores,
            )
            return
        cuda = next(self._learner.parameters()).device.type != "cpu"
        for chunk in chunks_of(rows, CHUNK_EXAMPLES if cuda else STREAMED_EXAMPLES):
            yield from self._predict(chunk)

    def _predict(self, examples: Sequence[Example]) -> list[Prediction]:
        if not examples:
            return []
        self._check_pairs(examples)
        # Gold plays no part in a prediction, and a label that the model does not know would stop the encoding.
        bare = [Example(e.text, text_pair=e.text_pair, source=e.source) for e in examples]
        found: list[Prediction] = []
        for part in encode_parts(self.task, bare, self._encoder):
            scored = score(self.task, self._learner, part, sweep=self._sweep_kept(), span_scores=self._span_scores)
            found.extend(scored.predictions)
        return found

    def _sweep_kept(self) -> Sweep:
        """One sweep for the Predictor's life: what out-of-memory taught it is not learned twice."""
        if self._sweep is None:
            tokens = EVALUATION_TOKENS if self.engine == "torch" else OTHER_ENGINES_TOKENS
            self._sweep = new_sweep(next(self._learner.parameters()).device, tokens)
        return self._sweep

    def _check_pairs(self, examples: Sequence[Example]) -> None:
        for number, example in enumerate(examples, 1):
            if (example.text_pair is not None) == self.settings.pairs:
                continue
            raise Refusal(
                _("the model takes pairs of texts, and this is one text")
                if self.settings.pairs
                else _("the model takes single texts, and this is a pair"),
                where=str(example.source or _("text {number}", number=number)),
                next_step=_("Give a second text with every text.")
                if self.settings.pairs
                else _("Leave the second text out."),
                code="FT710",
            )

    def describe(self) -> dict[str, Any]:
        """What ``GET /model`` tells: task, labels, scores, versions and settings."""
        settings = self.settings
        return {
            "name": str(self.run),
            "task": settings.task,
            "labels": list(settings.labels),
            "multi_label": settings.multi_label,
            "pairs": settings.pairs,
            "head": settings.head,
            "max_length": settings.max_length,
            "base_model": settings.base_model,
            "thresholds": settings.thresholds,
            "metrics": settings.metrics,
            "versions": settings.versions,
            "engine": self.engine,
            "examples": self.shown_examples(),
        }

    def shown_examples(self) -> list[dict[str, str]]:
        """A few texts of the development set, for the page; none when the run's directory is not at hand."""
        path = self.folder.parent / "dev-predictions.jsonl"
        if not path.is_file():
            return []
        with path.open(encoding="utf-8") as file:
            rows = [json.loads(line) for line in islice(file, 200)]
        # Texts in which something was found say more than those without.
        rows.sort(key=lambda row: not row.get("entities") and not row.get("labels"))
        return [{key: row[key] for key in ("text", "text_pair") if key in row} for row in rows[:SHOWN_EXAMPLES]]


def is_cuda(device: str | None) -> bool:
    """Whether torch would work on something else than the CPU."""
    return device not in (None, "cpu") or (device is None and torch.cuda.is_available())


def refuse_workers_on_cuda(device: str | None, engine: str) -> None:
    """Raises a Refusal there: processes would take turns on the card, and each would hold the model in its memory."""
    if engine == "torch" and is_cuda(device):
        raise Refusal(
            _("on a graphics card one process is the fastest"),
            where="--workers",
            next_step=_("Leave it out. For several processes on the CPU, hide the card: CUDA_VISIBLE_DEVICES=-1"),
        )


def model_folder(run: str | Path) -> Path:
    """The folder with the model's files: ``run`` itself, or its ``model``.

    Raises:
        Refusal: neither holds a trained model.
    """
    run = Path(run)
    for folder in (run, run / "model"):
        if (folder / "fitune.json").is_file():
            return folder
    if run.is_dir() and (run / "events.jsonl").is_file():
        found = _("this run has no model yet: it was stopped before its first evaluation")
        step = _("Train on: the same command goes on where it stopped.")
    elif run.is_dir():
        found = _("there is no trained model in it")
        step = _("Name a run's directory such as runs/train-1, or the model folder inside it.")
    else:
        found = _("there is no such folder")
        step = _("Runs lie under runs/ in the folder where they were trained.")
    raise Refusal(found, where=str(run), next_step=step, code="FT708")
