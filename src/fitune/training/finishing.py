"""After the last step: score dev and test with the best model, and write evaluation.json."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from fitune.data import coverage, leaked
from fitune.hf import Trainer
from fitune.runs import Evaluation, Histogram, Run, SplitEvaluation
from fitune.tasks import (
    ClassificationTask,
    Evaluator,
    Learner,
    MultiLabelMetrics,
    Scored,
    SplitData,
    Tally,
    encode_parts,
    load,
    rewrite_settings,
)
from fitune.training.callbacks import BestModel, Events
from fitune.training.preparing import Prepared, device_name, versions


def finish(prepared: Prepared, run: Run, best: BestModel, events: Events, trainer: Trainer, seconds: float) -> None:
    """Score dev and test with the best model, as it lies on the disk, and write evaluation.json."""
    device = trainer.args.device
    saved = load(run.model_path, device=device, check=False)
    learner, task = saved.learner, prepared.task
    learner.class_weights, learner.label_smoothing = prepared.learner.class_weights, prepared.learner.label_smoothing
    learner.precision = prepared.learner.precision
    thresholds: dict[str, float] = {}
    if isinstance(task, ClassificationTask) and task.multi_label:
        tally = prepared.dev.tally(learner)
        assert isinstance(tally.metrics, MultiLabelMetrics)
        task = task.with_thresholds(tally.metrics.best_thresholds())
        thresholds = dict(zip(task.labels, task.thresholds, strict=True))
        rewrite_settings(run.model_path, saved.settings.model_copy(update={"thresholds": thresholds}))
    dev = Evaluator(task, prepared.dev.parts)
    splits = {"dev": _split_evaluation(prepared, run, "dev", dev, learner)}
    if prepared.splits.test is not None:
        test = Evaluator(task, encode_parts(task, prepared.splits.test, prepared.encoder))
        splits["test"] = _split_evaluation(prepared, run, "test", test, learner)
    run.write_evaluation(
        Evaluation(
            task=task.name,
            multi_label=task.multi_label,
            labels=task.labels,
            metric=prepared.job.metric or "",
            best_step=best.best_step,
            splits=splits,
            data=tuple(prepared.splits.files),
            findings=prepared.findings,
            lengths_tokens=_lengths(prepared.train),
            thresholds=thresholds,
            versions=versions(),
            device=device_name(device),
            precision=prepared.learner.precision,
            parameters=sum(p.numel() for p in learner.parameters()),
            measured_seconds=seconds,
            measured_peak_bytes=_peak_bytes(device),
        )
    )
    # Last: on a full disk all this is done again, and told once.
    if "test" in splits:
        shown = splits["test"].metrics
        events.emit("evaluation", trainer.state, split="test", metrics=shown, best=False, seconds=None)


def _split_evaluation(
    prepared: Prepared, run: Run, name: str, evaluator: Evaluator, learner: Learner
) -> SplitEvaluation:
    """Scores of a split, with and without rows that training saw; predictions go to ``<split>-predictions.jsonl``."""
    examples = [example for part in evaluator.parts for example in part.examples]
    seen = np.array(leaked(examples, prepared.splits.train), np.bool_)
    unseen = Tally(evaluator.task, evaluator.task.new_metrics())
    at = 0
    with (run.directory / f"{name}-predictions.jsonl").open("w", encoding="utf-8") as file:

        def watch(part: SplitData, scored: Scored) -> None:
            nonlocal at
            for prediction in scored.predictions:
                file.write(json.dumps(prediction.to_json(), ensure_ascii=False) + "\n")
            if seen.any():
                unseen.update_rows(part.examples, scored, ~seen[at : at + len(part)])
            at += len(part)

        tally = evaluator.tally(learner, keep_errors=True, watch=watch)
    covered = [coverage(part.windows, part.examples) for part in evaluator.parts]
    kept = sum(c.labelled - c.labelled_dropped for c in covered)
    result = tally.split_evaluation(evaluator.weight)
    return result.model_copy(
        update={
            "rows_seen": int(seen.sum()),
            "metrics_without_seen": unseen.metrics.metrics() if seen.any() else None,
            "coverage": sum(c.labelled_in_windows for c in covered) / kept if kept else 1.0,
        }
    )


def _lengths(data: SplitData) -> Histogram:
    """Tokens of the training texts before windowing, in 20 bins."""
    windows = data.windows
    owned = np.add.reduceat(windows.owned.astype(np.int64), windows.bounds[:-1])
    tokens = np.bincount(windows.example, owned, len(data)).astype(np.int64)
    step = max(1, math.ceil((int(tokens.max()) + 1) / 20))
    edges = list(range(0, step * 21, step))
    return Histogram(edges=tuple(edges), counts=tuple(int(n) for n in np.histogram(tokens, edges)[0]))


def _peak_bytes(device: Any) -> int | None:
    import torch

    return int(torch.cuda.max_memory_reserved(device)) if device.type == "cuda" else None
