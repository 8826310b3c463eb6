"""Before the first step: read, check, choose, encode; everything that can go wrong goes wrong here."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import fitune
from fitune.data import check, quote_map
from fitune.hf import keep_tokens, load_model, load_tokenizer, make_encoder, quicken_dropout, resolve
from fitune.messages import _
from fitune.tasks import Evaluator, Learner, SplitData, Task, class_weights, encode_parts, make_learner, make_task
from fitune.training.compiling import settle_compiled
from fitune.training.defaults import resolve_defaults
from fitune.training.pacing import Pace, choose_pace
from fitune.training.precision import choose_precision, slow_precision_text
from fitune.training.splits import Splits, read_splits
from fitune.values import Finding, Fit, Job, Refusal

SEVERITIES = ("error", "warning", "note")
CPU_MICRO_BATCH_TOKENS = 512
"""Padded tokens in a pass on CPU: short sorted passes waste little on padding, and caches hold them."""


@dataclass
class Prepared:
    """All that training needs, read and encoded."""

    job: Job
    fit: Fit
    precision_reason: str
    slow_precision: str | None
    """What to tell where the precision that was asked for is slower than fp32."""
    pace: Pace
    task: Task
    splits: Splits
    findings: tuple[Finding, ...]
    tokenizer: Any
    encoder: Any
    learner: Learner
    train: SplitData
    dev: Evaluator
    folder: Path


def prepare(job: Job, fit: Fit | None = None, *, settled: bool = False, splits: Splits | None = None) -> Prepared:
    """Read, check, choose and encode: everything before the first step that can go wrong.

    ``settled``: ``fit`` is what an earlier process of this run chose; nothing of it is chosen anew. ``splits``: the
    job's rows, where they are read already.
    """
    import torch
    from transformers import AutoConfig, set_seed

    splits = splits or read_splits(job)
    source = resolve(job.model, job.task or splits.rows.task)
    tokenizer = load_tokenizer(source.folder, lowercase=job.lowercase)
    translation = quote_map(tokenizer.get_vocab()) if job.normalize_quotes else None
    encoder = keep_tokens(make_encoder(tokenizer, translation=translation))
    config = AutoConfig.from_pretrained(source.folder)
    hidden_size = int(getattr(config, "hidden_size", 768))
    job = resolve_defaults(job, splits.rows, hidden_size=hidden_size, longest_input=encoder.max_length)
    pairs = any(example.text_pair is not None for example in splits.train)
    task = make_task(job, splits.labels, multi_label=bool(job.multi_label), pairs=pairs)
    check_metric(job, task)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    given = set[str]() if fit is None else set(fit.model_fields_set)
    fit, reason = choose_fit(fit, device)
    slow = slow_precision_text(fit.precision, device) if "precision" in given else None
    set_seed(job.seed)
    weights = class_weights(job, task, splits.train)
    learner = make_learner(job, fit, task, lambda *a, **k: load_model(source.folder, *a, **k), weights=weights)
    seen = check(splits.rows_by_split, encoder, max_length=job.max_length).findings
    findings = tuple(sorted((*splits.findings, *seen), key=lambda found: SEVERITIES.index(found.severity)))
    data = task.encode(splits.train, encoder, class_weights=weights)
    dev = Evaluator(task, encode_parts(task, splits.dev, encoder, class_weights=weights))
    if device.type == "cpu":
        quicken_dropout(learner)
    fit, pace = settle_pace(learner.to(device), data, fit, job, given, settled=settled)
    return Prepared(
        job, fit, reason, slow, pace, task, splits, findings, tokenizer, encoder, learner, data, dev, source.folder
    )


def settle_pace(
    learner: Learner, data: SplitData, fit: Fit, job: Job, given: set[str], *, settled: bool = False
) -> tuple[Fit, Pace]:
    """The way through the steps that is fastest here, unless it was asked for; the learner is set to it."""
    open_fields = {"attention", "micro_batch_tokens"} - given
    if "micro_batch" in given:
        open_fields.discard("micro_batch_tokens")
    steps_total = math.ceil((job.epochs or 1) * math.ceil(len(data) / job.batch_size))
    choice: dict[str, Any] = {"batch_size": job.batch_size, "steps_total": steps_total, "open_fields": open_fields}
    pace = choose_pace(learner, data.columns, fit, **choice)
    if fit.compile:
        pace = settle_compiled(learner, data.columns, fit, pace, **choice, settled=settled)
    if pace.attention == "packed":
        learner.run_packed()
    update = {"attention": pace.attention, "micro_batch_tokens": pace.micro_batch_tokens, "compile": pace.compiled}
    return fit.model_copy(update=update), pace


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
    """``fit`` with what it leaves open chosen for this device, and the reason for its precision."""
    given = set() if fit is None else fit.model_fields_set
    chosen: dict[str, Any] = {}
    reason = _("as asked for")
    if "precision" not in given:
        chosen["precision"], reason = choose_precision(device)
    if device.type == "cpu" and not given & {"micro_batch", "micro_batch_tokens"}:
        chosen["micro_batch_tokens"] = CPU_MICRO_BATCH_TOKENS
    return (fit or Fit()).model_copy(update=chosen), reason


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
