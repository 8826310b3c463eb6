"""``train``: a Job becomes a Run."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import fitune
from fitune.data import check, coverage, leaked, quote_map
from fitune.hf import (
    NonFiniteLoss,
    StepData,
    Trainer,
    load_model,
    load_tokenizer,
    make_encoder,
    resolve,
    training_arguments,
)
from fitune.messages import _
from fitune.runs import Evaluation, Histogram, Run, SplitEvaluation, new_run_directory, write_report
from fitune.tasks import (
    ClassificationTask,
    Evaluator,
    Learner,
    Scored,
    SplitData,
    Task,
    class_weights,
    encode_parts,
    load,
    make_learner,
    make_optimizer_of,
    make_task,
    rewrite_settings,
    save,
    settings_of,
)
from fitune.training.callbacks import LOGGED_POINTS, BestModel, Events, Interrupts, Listener, Stop, evaluation_steps
from fitune.training.defaults import resolve_defaults
from fitune.training.precision import choose_precision
from fitune.training.splits import Splits, keep_split, read_splits
from fitune.values import Finding, Fit, Job, Refusal

CPU_MICRO_BATCH_TOKENS = 512
"""Padded tokens in a pass on CPU: short sorted passes waste little on padding, and caches hold them."""


@dataclass
class Prepared:
    """All that training needs, read and encoded."""

    job: Job
    fit: Fit
    precision_reason: str
    task: Task
    splits: Splits
    findings: tuple[Finding, ...]
    tokenizer: Any
    encoder: Any
    learner: Learner
    train: SplitData
    dev: Evaluator
    folder: Path


def train(
    job: Job,
    *,
    fit: Fit | None = None,
    run_directory: str | Path | None = None,
    fresh: bool = False,
    listeners: Iterable[Listener] = (),
    report_to: str | list[str] = "none",
) -> Run:
    """Train a model and keep everything about it in a run's directory.

    Args:
        job: what to learn; open fields are chosen by the rules in ``training.defaults``.
        fit: how a step is laid out in memory; None: whole steps, in the precision that suits the hardware.
        run_directory: where to; None: ``runs/<training file>-<n>``.
        fresh: start anew even where a run of the same job could go on.
        listeners: called with every Event as it is written.
        report_to: trackers of the Hugging Face Trainer, such as "tensorboard".

    Returns:
        The Run. Its last Event, "stopped", tells why it ended and with which exit code.

    Raises:
        Refusal: bad data, settings or model; a loss that is not finite (the run's directory holds what was kept).
    """
    prepared = prepare(job, fit)
    directory = Path(run_directory) if run_directory is not None else new_run_directory(job.train)
    run = Run.create(directory, prepared.job)
    keep_split(run, prepared.splits, prepared.job.seed)
    try:
        _fit(prepared, run, [run.append, *listeners], report_to)
    finally:
        run.close()
    return run


def prepare(job: Job, fit: Fit | None = None) -> Prepared:
    """Read, check, choose and encode: everything before the first step that can go wrong."""
    import torch
    from transformers import AutoConfig, set_seed

    splits = read_splits(job)
    source = resolve(job.model)
    tokenizer = load_tokenizer(source.folder, lowercase=job.lowercase)
    encoder = make_encoder(tokenizer, translation=quote_map(tokenizer.get_vocab()) if job.normalize_quotes else None)
    config = AutoConfig.from_pretrained(source.folder)
    hidden_size = int(getattr(config, "hidden_size", 768))
    job = resolve_defaults(job, splits.rows, hidden_size=hidden_size, longest_input=encoder.max_length)
    pairs = any(example.text_pair is not None for example in splits.train)
    task = make_task(job, splits.labels, multi_label=bool(job.multi_label), pairs=pairs)
    check_metric(job, task)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    fit, reason = choose_fit(fit, device)
    set_seed(job.seed)
    weights = class_weights(job, task, splits.train)
    learner = make_learner(job, fit, task, lambda *a, **k: load_model(source.folder, *a, **k), weights=weights)
    findings = check(splits.rows_by_split, encoder, max_length=job.max_length).findings
    data = task.encode(splits.train, encoder, class_weights=weights)
    dev = Evaluator(task, encode_parts(task, splits.dev, encoder, class_weights=weights))
    return Prepared(job, fit, reason, task, splits, findings, tokenizer, encoder, learner, data, dev, source.folder)


def check_metric(job: Job, task: Task) -> None:
    """Refuse a metric that the task does not report: before step 1, not after the first epoch."""
    if job.metric not in task.metric_names:
        raise Refusal(
            _("{task} does not report the metric {metric}", task=task.name, metric=job.metric),
            where="metric",
            next_step=_("It reports: {names}", names=", ".join(task.metric_names)),
            code="FT505",
        )


def choose_fit(fit: Fit | None, device: Any) -> tuple[Fit, str]:
    """The Fit as given, or one for this device; with the reason for its precision."""
    if fit is not None:
        return fit, _("as asked for")
    precision, reason = choose_precision(device)
    tokens = CPU_MICRO_BATCH_TOKENS if device.type == "cpu" else None
    return Fit(precision=precision, micro_batch_tokens=tokens), reason


def _fit(prepared: Prepared, run: Run, listeners: list[Listener], report_to: str | list[str]) -> None:
    """Train, evaluate with the best model, write model, evaluation and report."""
    job = prepared.job
    begun = time.time()
    steps_per_epoch = math.ceil(len(prepared.train) / job.batch_size)
    steps_total = math.ceil((job.epochs or 1) * steps_per_epoch)
    events = Events(listeners, evaluation_steps(steps_per_epoch, steps_total), max(1, steps_total // LOGGED_POINTS))
    interrupts = Interrupts()
    best = BestModel(job.metric or "", job.patience, events, lambda metrics: _keep(prepared, run, metrics))
    trainer = make_trainer(prepared, run, [events, best, interrupts], report_to, steps_total)
    events.trainer = trainer
    trainer.notice = lambda code, text: events.emit("warning", trainer.state, code=code, text=text)
    trainer.changed = lambda change: events.emit(
        "micro_batch", trainer.state, from_tokens=change.from_tokens, to_tokens=change.to_tokens, reason=change.reason
    )
    events.emit("started", trainer.state, **_started(prepared, steps_total))
    for note in [*prepared.splits.rows.notes, *prepared.splits.notes]:
        events.emit("warning", trainer.state, code="FT134", text=note)
    for finding in prepared.findings:
        if finding.severity != "note":
            events.emit("warning", trainer.state, code=finding.code, text=finding.title)
    try:
        with interrupts:
            trainer.train()
            if best.best_step is None:
                trainer.evaluate()
    except NonFiniteLoss:
        events.emit("stopped", trainer.state, reason="failed", exit_code=NonFiniteLoss.exit_code)
        raise
    except KeyboardInterrupt:
        events.emit("stopped", trainer.state, reason="interrupted", exit_code=130)
        raise
    finish(prepared, run, best, events, trainer, time.time() - begun)
    stop = interrupts.stop or Stop("early_stop" if best.stopped_early else "finished", 0)
    events.emit("stopped", trainer.state, reason=stop.reason, exit_code=stop.exit_code)
    write_report(run)


def make_trainer(
    prepared: Prepared, run: Run, callbacks: list[Any], report_to: str | list[str], steps_total: int
) -> Trainer:
    """The Trainer of a prepared job; it writes nothing by itself."""
    import torch

    job = prepared.job
    arguments = training_arguments(
        output_dir=str(run.directory),
        per_device_train_batch_size=job.batch_size,
        num_train_epochs=job.epochs,
        max_steps=steps_total,
        warmup_steps=round(job.warmup_fraction * steps_total),
        max_grad_norm=job.max_grad_norm,
        seed=job.seed,
        data_seed=job.seed,
        report_to=report_to,
        use_cpu=not torch.cuda.is_available(),
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    trainer = Trainer(
        model=prepared.learner,
        args=arguments,
        fit=prepared.fit,
        train_dataset=StepData(prepared.train.columns),
        eval_dataset=prepared.dev,
        callbacks=callbacks,
        optimizers=(None, None),
    )
    trainer.optimizer = make_optimizer_of(prepared.learner, job, prepared.fit)
    from transformers import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return trainer


def _keep(prepared: Prepared, run: Run, metrics: dict[str, float]) -> None:
    """Write the best model so far: a run that is killed leaves a usable one behind."""
    task, job = prepared.task, prepared.job
    settings = settings_of(
        task,
        max_length=job.max_length,
        lowercase=_lowers(prepared.tokenizer),
        normalize_quotes=job.normalize_quotes,
        base_model=job.model,
        metrics=metrics,
        versions=versions(),
    )
    save(run.model_path, prepared.learner, prepared.tokenizer, settings)


def _lowers(tokenizer: Any) -> bool:
    """Does the tokenizer lower-case its input?"""
    normalizer = tokenizer.backend_tokenizer.normalizer
    return normalizer is not None and "a" in normalizer.normalize_str("A")


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
        task = task.with_thresholds(tally.metrics.best_thresholds())  # pyright: ignore
        thresholds = dict(zip(task.labels, task.thresholds, strict=True))
        rewrite_settings(run.model_path, saved.settings.model_copy(update={"thresholds": thresholds}))
    dev = Evaluator(task, prepared.dev.parts)
    splits = {"dev": _split_evaluation(prepared, run, "dev", dev, learner)}
    if prepared.splits.test is not None:
        test = Evaluator(task, encode_parts(task, prepared.splits.test, prepared.encoder))
        splits["test"] = _split_evaluation(prepared, run, "test", test, learner)
        shown = splits["test"].metrics
        events.emit("evaluation", trainer.state, split="test", metrics=shown, best=False, seconds=None)
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


def _split_evaluation(
    prepared: Prepared, run: Run, name: str, evaluator: Evaluator, learner: Learner
) -> SplitEvaluation:
    """Scores of a split, with and without rows that training saw; predictions go to ``<split>-predictions.jsonl``."""
    examples = [example for part in evaluator.parts for example in part.examples]
    seen = np.array(leaked(examples, prepared.splits.train), np.bool_)
    from fitune.tasks import Tally

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


def _started(prepared: Prepared, steps_total: int) -> dict[str, Any]:
    trainable = sum(p.numel() for p in prepared.learner.parameters() if p.requires_grad)
    return {
        "versions": versions(),
        "device": device_name(next(prepared.learner.parameters()).device),
        "precision": prepared.fit.precision,
        "precision_reason": prepared.precision_reason,
        "fit": prepared.fit.model_dump(),
        "rows": {"train": len(prepared.train), "dev": len(prepared.dev), "test": len(prepared.splits.test or ())},
        "steps_total": steps_total,
        "parameters": trainable,
        "task": prepared.task.name,
        "metric": prepared.job.metric,
    }


def versions() -> dict[str, str]:
    """Package -> version."""
    found = {"python": platform.python_version(), "fitune": fitune.__version__}
    for package in ("torch", "transformers", "tokenizers", "accelerate", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def device_name(device: Any) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"{device.type} ({platform.machine()})"


def _peak_bytes(device: Any) -> int | None:
    import torch

    return int(torch.cuda.max_memory_reserved(device)) if device.type == "cuda" else None
