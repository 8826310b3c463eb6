"""Export to ONNX or CTranslate2, and the proof that it is still the model: every development row, both ways.

The ONNX folder runs without torch (its ``example.py`` needs onnxruntime, tokenizers, numpy and safetensors alone);
``Predictor`` and ``fitune serve`` run it too. The file is written by torch's own exporter
(``torch.onnx.export(dynamo=True)``); the older tracing exporter gave other logits for the same classifier (torch 2.13,
transformers 5.24), which the check below would have refused.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import statistics
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fitune.checkpoint import usual_modes
from fitune.data import quote_map, read
from fitune.hf import CannotPack
from fitune.messages import _
from fitune.microbatch import Budget
from fitune.microbatch import split as cut
from fitune.predicting.card import write_card
from fitune.predicting.choosing import EXPORT_FILE, machine_name
from fitune.predicting.ctranslate import convert
from fitune.predicting.engines import ENGINES, FORMATS, load_engine
from fitune.predicting.predictor import model_folder
from fitune.runs import Run
from fitune.tasks import Evaluator, SavedModel, encode_parts, load, read_settings, rewrite_settings
from fitune.tasks.saved import sha256_of
from fitune.values import Example, Job, Refusal
from fitune.values.base import Value

__all__ = ["Comparison", "export"]

LOGIT_TOLERANCE = 1e-4
"""Largest difference of an fp32 logit between torch and another engine."""

TIMED_ROWS = 64
TIMED_ROUNDS = 3

COMPARED_TOKENS = 4096
"""Padded tokens in a pass of the comparison."""


class Comparison(Value):
    """The exported model beside the trained one, on the same rows."""

    engine: str
    rows: int
    rows_with_other_predictions: int
    largest_logit_difference: float
    metric: str
    torch_score: float
    exported_score: float
    times_as_fast: float
    """As torch without padding, on the same rows in turn, on this machine (wall time)."""

    @property
    def drop_points(self) -> float:
        """Points (of 100) that the exported model scores less."""
        return 100 * (self.torch_score - self.exported_score)


def export(
    run: str | Path,
    out: str | Path | None = None,
    *,
    to: str = "onnx",
    int8: bool = False,
    max_drop: float = 0.5,
    dev: str | None = None,
) -> tuple[Path, list[Comparison]]:
    """Write the model of ``run`` for another engine; what differs on the development set is not left behind.

    Args:
        out: folder; None: the format's name in the run's directory.
        to: one of FORMATS.
        int8: also dynamic int8 quantization of the weights.
        max_drop: points (of 100) that int8 may score less than the trained model.
        dev: development file; None: the run's own development rows.

    Returns:
        The folder, and one Comparison per exported file.

    Raises:
        Refusal: no model, no development rows, logits that differ by more than LOGIT_TOLERANCE, int8 that loses more
            than ``max_drop``; nothing is left behind then.
    """
    if to not in FORMATS:
        raise Refusal(_("there is no format {name}", name=to), where="--to", next_step=f"--to {' | '.join(FORMATS)}")
    engines = [to, f"{to}-int8"] if int8 else [to]
    require_packages(to)
    source = model_folder(run)
    target = Path(out) if out is not None else source.parent / to
    if target.exists() and not (target / "fitune.json").is_file():
        raise Refusal(
            _("the folder exists and holds something else"), where=str(target), next_step=_("Choose another --out.")
        )
    saved = load(source, device="cpu")
    examples = development_rows(source, dev)
    aside = target.with_name(f".{target.name}.{os.getpid()}.new")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        comparisons = _write_and_compare(saved, source, aside, examples, engines, max_drop)
        facts = {
            "source": read_settings(source).files.get(ENGINES["torch"]),
            "machine": machine_name(),
            "replaced_characters": _replaced_characters(saved),
            "comparisons": [comparison.model_dump() for comparison in comparisons],
        }
        (aside / EXPORT_FILE).write_text(json.dumps(facts, ensure_ascii=False, indent=1), encoding="utf-8")
        write_card(aside, source, comparisons)
        usual_modes(aside)
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
    except Refusal as refused:
        # The folder aside is gone when this is read; the one that was asked for is what the reader knows.
        raise _elsewhere(refused, aside, target) from refused
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target, comparisons


def _elsewhere(refused: Refusal, aside: Path, target: Path) -> Refusal:
    found, where, step = (
        text.replace(str(aside), str(target)) for text in (refused.found, refused.where, refused.next_step)
    )
    return Refusal(found, where=where, next_step=step, code=refused.code)


def require_packages(to: str) -> None:
    """Before the model is read and a folder is begun.

    Raises:
        Refusal: a package that the format needs is not installed.
    """
    packages = {"onnx": ("onnx", "onnxruntime", "onnxscript"), "ctranslate2": ("ctranslate2",)}[to]
    if missing := [name for name in packages if find_spec(name) is None]:
        raise Refusal(
            _("the package {name} is not installed", name=", ".join(missing)),
            where=f"--to {to}",
            next_step=f'pip install "fitune[{"export" if to == "onnx" else to}]"',
            code="FT712",
        )


def _replaced_characters(saved: SavedModel) -> dict[str, str]:
    """What is replaced before the tokenizer sees a text, for readers without fitune (``example.py``)."""
    if not saved.settings.normalize_quotes:
        return {}
    return {chr(point): other for point, other in quote_map(saved.tokenizer.get_vocab()).items()}


def _write_and_compare(
    saved: SavedModel, source: Path, aside: Path, examples: Sequence[Example], engines: list[str], max_drop: float
) -> list[Comparison]:
    for path in source.iterdir():
        if path.is_file() and path.name not in {ENGINES["torch"], "README.md", "example.py"}:
            shutil.copy2(path, aside / path.name)
    # As it is used here, case included: other readers take what stands in the file.
    saved.tokenizer.backend_tokenizer.save(str(aside / "tokenizer.json"))
    if "onnx" in engines:
        shutil.copy2(Path(__file__).with_name("example_runner.py"), aside / "example.py")
        write_onnx(saved, aside / ENGINES["onnx"])
        if "onnx-int8" in engines:
            quantize(aside / ENGINES["onnx"], aside / ENGINES["onnx-int8"])
    else:
        precisions = ("float32", "int8") if "ctranslate2-int8" in engines else ("float32",)
        convert(saved, aside, precisions)
    settings = read_settings(aside)
    written = [path for path in sorted(aside.rglob("*")) if path.is_file() and path.name != "fitune.json"]
    files = {path.relative_to(aside).as_posix(): sha256_of(path) for path in written}
    rewrite_settings(aside, settings, files=files)
    parts = encode_parts(saved.task, examples, saved.encoder())
    reference = _Reference(saved, parts)
    comparisons: list[Comparison] = []
    for engine in engines:
        comparison = reference.compare(load_engine(aside, engine), engine)
        _refuse_if_worse(comparison, max_drop)
        comparisons.append(comparison)
    return comparisons


def _refuse_if_worse(comparison: Comparison, max_drop: float) -> None:
    difference, score = f"{comparison.largest_logit_difference:.2g}", f"{comparison.exported_score:.4f}"
    drop, most = f"{comparison.drop_points:.2f}", f"{max_drop:g}"
    exact = not comparison.engine.endswith("-int8")
    if exact and comparison.largest_logit_difference > LOGIT_TOLERANCE:
        raise Refusal(
            _(
                "the exported model is not the trained one: logits differ by {difference}",
                difference=difference,
            ),
            where=ENGINES[comparison.engine],
            next_step=_("Please report this with the versions that fitune doctor prints; nothing was exported."),
            code="FT713",
        )
    if not exact and comparison.drop_points > max_drop:
        raise Refusal(
            _(
                "int8 scores {metric} {score}, {drop} points less than the trained model; at most {most} are allowed",
                metric=comparison.metric,
                score=score,
                drop=drop,
                most=most,
            ),
            where=ENGINES[comparison.engine],
            next_step=_("Export without --int8, or accept the loss with --max-drop; nothing was exported."),
            code="FT714",
        )


def development_rows(model: Path, dev: str | None) -> list[Example]:
    """The labelled rows that the check compares on: ``dev``, or those of the run that ``model`` lies in.

    Raises:
        Refusal: there are none.
    """
    if dev is not None:
        rows = read(dev).examples
    elif (model.parent / "job.toml").is_file():
        run = Run.open(model.parent)
        rows = _rows_of_run(run, run.job)
    else:
        rows = []
    labelled = [e for e in rows if e.spans is not None or e.labels is not None]
    if not labelled:
        raise Refusal(
            _("there are no labelled rows to check the exported model with"),
            where=dev or str(model),
            next_step=_("Name a labelled file: --dev FILE"),
        )
    return labelled


def _rows_of_run(run: Run, job: Job) -> list[Example]:
    path = job.dev or job.train
    if not Path(path).is_file():
        raise Refusal(
            _("the run's data file is no longer there"), where=path, next_step=_("Name a labelled file: --dev FILE")
        )
    rows = read(
        path,
        format=job.format,
        task=job.task,
        text_column=job.text_column,
        text_pair_column=job.text_pair_column,
        label_column=job.label_column,
        multi_label=job.multi_label,
    ).examples
    if job.dev is not None:
        return rows
    chosen = set(json.loads((run.directory / "split.json").read_text(encoding="utf-8"))["dev"])
    return [example for example in rows if str(example.source) in chosen]


class _Logits(nn.Module):
    """Positional tensors in, logits out: what the exporter traces."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, tuple(names)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True))).logits


def write_onnx(saved: SavedModel, path: Path) -> None:
    """One ONNX file with dynamic batch and length; its output is ``logits`` (B, L, C) or (B, C)."""
    probe = [
        Example("一二三四五六", text_pair="七" if saved.settings.pairs else None),
        Example("八", text_pair="九" if saved.settings.pairs else None),
    ]
    part = saved.task.encode(probe, saved.encoder())
    batch = part.columns.collate(np.arange(2))
    names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in batch]
    model = saved.learner.model.eval()
    with _quiet(), torch.no_grad():
        torch.onnx.export(
            _Logits(model, names),
            tuple(batch[name] for name in names),
            str(path),
            input_names=names,
            output_names=["logits"],
            dynamic_shapes=(tuple({0: torch.export.Dim("batch"), 1: torch.export.Dim("length")} for _name in names),),
            dynamo=True,
            external_data=False,
            verbose=False,
        )


@contextmanager
def _quiet() -> Generator[None, None, None]:
    """The exporter tells its steps as warnings and log lines of several libraries; none is about the user's model."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


def quantize(source: Path, target: Path) -> None:
    """Dynamic quantization: weights of matrix products as int8 per channel, activations at run time."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with _quiet():
        # reduce_range: without VNNI instructions two int8 products overflow 16 bits (onnxruntime's documentation).
        quantize_dynamic(str(source), str(target), weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


class _Reference:
    """The trained model on the development rows: logits of every pass, score and predictions, computed once."""

    def __init__(self, saved: SavedModel, parts: Sequence[Any]) -> None:
        self.saved, self.parts = saved, parts
        self.logits = [found for part in parts for found in _logits(saved, part)]
        self.score, self.predictions = _scored(saved, saved, parts)
        # Only now: up to here the model ran as it is.
        with suppress(CannotPack):
            saved.learner.run_packed()

    def compare(self, exported: SavedModel, engine: str) -> Comparison:
        """The other model on the same windows: logits, predictions and the task's own metric."""
        others = (found for part in self.parts for found in _logits(exported, part))
        largest = max(
            (float(np.abs(a - b).max()) for a, b in zip(self.logits, others, strict=True) if a.size), default=0.0
        )
        score, predictions = _scored(self.saved, exported, self.parts)
        return Comparison(
            engine=engine,
            rows=len(predictions),
            rows_with_other_predictions=sum(a != b for a, b in zip(self.predictions, predictions, strict=True)),
            largest_logit_difference=largest,
            metric=self.saved.task.default_metric,
            torch_score=self.score,
            exported_score=score,
            times_as_fast=self._times_as_fast(exported),
        )

    def _times_as_fast(self, exported: SavedModel) -> float:
        """Median over rounds of torch's time by the other's."""
        part = self.saved.task.encode(self.parts[0].examples[:TIMED_ROWS], self.saved.encoder())
        rounds: list[float] = []
        for _round in range(TIMED_ROUNDS):
            seconds: list[float] = []
            for model in (self.saved, exported):
                begin = time.perf_counter()
                for _logits_of_pass in _logits(model, part):
                    pass
                seconds.append(time.perf_counter() - begin)
            rounds.append(seconds[0] / seconds[1])
        return statistics.median(rounds)


def _scored(saved: SavedModel, model: SavedModel, parts: Sequence[Any]) -> tuple[float, list[Any]]:
    """Score and bare predictions of ``model`` on rows of ``saved``'s task."""
    found: list[Any] = []
    tally = Evaluator(saved.task, parts).tally(
        model.learner, watch=lambda _part, scored: found.extend(map(_bare, scored.predictions))
    )
    return tally.metrics.metrics()[saved.task.default_metric], found


def _bare(prediction: Any) -> Any:
    """A prediction without its scores."""
    return prediction.labels, tuple((s.start, s.end, s.label) for s in prediction.spans or ())


def _logits(model: SavedModel, part: Any) -> Generator[NDArray[np.float32], None, None]:
    """Logits of every pass over a part: (tokens, C) without padding, or (B, C)."""
    columns = part.columns
    for piece in cut(columns.lengths_W.tolist(), Budget(tokens=COMPARED_TOKENS)):
        batch = columns.collate(np.asarray(piece.indices, np.int64))
        inputs = {name: value for name, value in batch.items() if name not in {"labels", "weights"}}
        with torch.inference_mode():
            logits: NDArray[np.float32] = model.learner(**inputs)[1].numpy()
        yield logits[inputs["attention_mask"].numpy().astype(bool)] if logits.ndim == 3 else logits
