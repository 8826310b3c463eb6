"""``train``: a Job becomes a Run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fitune.checkpoint import Checkpoint, Lock, NotSaved, PassedOver, Store, disk_error
from fitune.hf import NonFiniteLoss, StepData, Trainer, training_arguments
from fitune.messages import _
from fitune.microbatch import DoesNotFit
from fitune.runs import Run, write_report
from fitune.tasks import make_optimizer_of, save, settings_of, sweep_model
from fitune.training.callbacks import LOGGED_POINTS, BestModel, Events, Interrupts, Listener, Stop, evaluation_steps
from fitune.training.finishing import finish
from fitune.training.preparing import Prepared, device_name, prepare, versions
from fitune.training.rehearsal import Rehearsal
from fitune.training.resume import FINISHED, Choice, begin, choose_run
from fitune.training.room import Room, model_bytes, refuse_without_room
from fitune.training.saving import Keeper, Saving, steps_left
from fitune.training.splits import Splits, keep_split
from fitune.values import Fit, Job

LOCK = "lock"
"""Name of the lock file in a run's directory."""


def train(
    job: Job,
    *,
    fit: Fit | None = None,
    run_directory: str | Path | None = None,
    fresh: bool = False,
    listeners: Iterable[Listener] = (),
    report_to: str | list[str] = "none",
    saving: Saving | None = None,
    splits: Splits | None = None,
) -> Run:
    """Train a model and keep everything about it in a run's directory.

    Args:
        job: what to learn; open fields are chosen by the rules in ``training.defaults``.
        fit: how a step is laid out in memory; None: whole steps, in the precision that suits the hardware.
        run_directory: where to; None: the unfinished run of this job and data under ``runs/``, else a new one. A run
            that is there goes on from its newest good checkpoint when job and data are the same.
        fresh: start anew; the run that is in ``run_directory`` is kept beside.
        listeners: called with every Event as it is written.
        report_to: trackers of the Hugging Face Trainer, such as "tensorboard".
        saving: when the run saves itself, and when it must end.
        splits: the job's rows, where ``read_splits`` has read them already; None: they are read here.

    Returns:
        The Run. Its last Event, "stopped", tells why it ended and with which exit code.

    Raises:
        AlreadyFinished: the same job on the same data is trained to its end (FT608).
        Locked: another process works in this directory (FT603).
        Refusal: bad data, settings or model; another run in the directory (FT604); a loss that is not
            finite (the run's directory holds what was kept); a disk without room for the finished model (FT606).
    """
    choice = choose_run(job, run_directory, fresh=fresh)
    if choice.set_aside is not None:
        with Lock(choice.directory / LOCK):
            begin(choice, job)
    with Lock(choice.directory / LOCK):
        if choice.set_aside is None:
            begin(choice, job)
        return _train_in(choice, job, fit, listeners, report_to, saving or Saving(), splits)


def _train_in(
    choice: Choice,
    job: Job,
    fit: Fit | None,
    listeners: Iterable[Listener],
    report_to: str | list[str],
    saving: Saving,
    splits: Splits | None,
) -> Run:
    """``train`` in a directory that is ours alone."""
    run = Run(choice.directory)
    store = Store(run.checkpoints_path)
    store.sweep()
    sweep_model(run.model_path)
    checkpoint = store.newest() if choice.kind == "goes_on" else None
    asked = {} if fit is None else fit.model_dump(exclude_unset=True)
    settled = False
    if checkpoint is not None:
        fit, asked, settled = _as_chosen(fit, asked, checkpoint.state["facts"])
    prepared = prepare(job, fit, settled=settled, splits=splits)
    refuse_without_room(run.directory, model_bytes(prepared.learner, prepared.folder))
    if run.job_path.exists():
        run.write_job(prepared.job)
    else:
        Run.create(run.directory, prepared.job)
    keep_split(run, prepared.splits, prepared.job.seed)
    try:
        _fit(prepared, run, [run.append, *listeners], report_to, saving, checkpoint, store.passed_over, asked)
    finally:
        run.close()
    return run


def _as_chosen(
    fit: Fit | None, asked: dict[str, Any], facts: dict[str, Any]
) -> tuple[Fit | None, dict[str, Any], bool]:
    """For a run that goes on: the Fit, what of it was asked for, and whether all of it was chosen when the run began.

    The same command (or none of its options) goes on with what was measured then, for the same bits.
    """
    before = facts.get("asked", {})
    if fit is None or asked == before:
        return Fit.model_validate(facts["fit"]), before, True
    return fit, asked, False


def _fit(
    prepared: Prepared,
    run: Run,
    listeners: list[Listener],
    report_to: str | list[str],
    saving: Saving,
    checkpoint: Checkpoint | None,
    passed_over: list[PassedOver],
    asked: dict[str, Any],
) -> None:
    """Train, evaluate with the best model, write model, evaluation and report."""
    job = prepared.job
    begun = time.time()
    steps_per_epoch = math.ceil(len(prepared.train) / job.batch_size)
    steps_total = math.ceil((job.epochs or 1) * steps_per_epoch)
    events = Events(listeners, evaluation_steps(steps_per_epoch, steps_total), max(1, steps_total // LOGGED_POINTS))
    interrupts = Interrupts()
    room = Room(
        run.directory,
        model_bytes(prepared.learner, prepared.folder),
        events,
        interrupts,
        wait_seconds=saving.disk_wait_seconds,
        deadline=saving.deadline,
    )

    def keep(metrics: dict[str, float]) -> None:
        room.save_model(lambda: _keep(prepared, run, metrics))

    best = BestModel(job.metric or "", job.patience, events, keep)
    facts = {"fit": prepared.fit.model_dump(), "asked": asked}
    keeper = Keeper(run.checkpoints_path, saving, events, best, interrupts, room, facts)
    rehearsal = Rehearsal(prepared.train.columns, job.batch_size)
    trainer = make_trainer(prepared, run, [events, best, interrupts, keeper, rehearsal], report_to, steps_total)
    rehearsal.trainer = trainer
    _connect(trainer, events)
    _tell_beginning(prepared, events, steps_total)
    keeper.tell_start(trainer, checkpoint, passed_over)
    try:
        stop = _run_to_end(trainer, keeper, checkpoint, steps_total)
        if stop.reason in FINISHED:
            room.insist(lambda: finish(prepared, run, best, events, trainer, time.time() - begun))
    except NotSaved as error:
        stop = Stop("disk", error.exit_code)
        keeper.close()
    except (NonFiniteLoss, DoesNotFit) as error:
        if isinstance(error, DoesNotFit):
            keeper.rescue()
        events.emit("stopped", trainer.state, reason="failed", exit_code=error.exit_code)
        raise
    except KeyboardInterrupt:
        events.emit("stopped", trainer.state, reason="interrupted", exit_code=130)
        raise
    events.emit("stopped", trainer.state, reason=stop.reason, exit_code=stop.exit_code)
    try:
        write_report(run)
    except OSError as error:
        # The model is what counts; the report can be made again (fitune report) when there is room.
        if disk_error(error) is None:
            raise


def _run_to_end(trainer: Trainer, keeper: Keeper, checkpoint: Checkpoint | None, steps_total: int) -> Stop:
    """All steps that are left, or as many as come before the run is asked to stop; everything is on the disk then."""
    interrupts, best = keeper.interrupts, keeper.best
    with interrupts, keeper.attached(trainer, checkpoint) as resumed_from:
        if checkpoint is None or steps_left(checkpoint, steps_total):
            trainer.train(resume_from_checkpoint=resumed_from)
        if best.best_step is None and interrupts.stop is None:
            trainer.evaluate()
        keeper.close()
    return interrupts.stop or Stop("early_stop" if best.stopped_early else "finished", 0)


def _connect(trainer: Trainer, events: Events) -> None:
    """What the Trainer has to say becomes events."""
    events.trainer = trainer
    trainer.notice = lambda code, text: events.emit("warning", trainer.state, code=code, text=text)
    trainer.changed = lambda change: events.emit(
        "micro_batch",
        trainer.state,
        from_tokens=change.from_tokens,
        to_tokens=change.to_tokens,
        reason=f"{change.reason}: {change.knob}" if change.knob else change.reason,
    )


def _tell_beginning(prepared: Prepared, events: Events, steps_total: int) -> None:
    state = events.trainer.state
    events.emit("started", state, **_started(prepared, steps_total))
    if prepared.slow_precision:
        events.emit("warning", state, code="FT411", text=prepared.slow_precision)
    if prepared.pace.compile_failure:
        text = _("trains without torch.compile: {reason}", reason=prepared.pace.compile_failure)
        events.emit("warning", state, code="FT424", text=text)
    for note in prepared.splits.rows.notes:
        events.emit("warning", state, code="FT134", text=note)
    for finding in prepared.findings:
        if finding.severity != "note":
            text = finding.title
            if finding.evidence:
                text = _("{finding}; first: {evidence}", finding=text, evidence=finding.evidence[0])
            events.emit("warning", state, code=finding.code, text=text)


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


def _started(prepared: Prepared, steps_total: int) -> dict[str, Any]:
    trainable = sum(p.numel() for p in prepared.learner.parameters() if p.requires_grad)
    return {
        "versions": versions(),
        "device": device_name(next(prepared.learner.parameters()).device),
        "precision": prepared.fit.precision,
        "precision_reason": prepared.precision_reason,
        "fit": prepared.fit.model_dump(),
        "pace": prepared.pace.facts(),
        "rows": {"train": len(prepared.train), "dev": len(prepared.dev), "test": len(prepared.splits.test or ())},
        "steps_total": steps_total,
        "parameters": trainable,
        "task": prepared.task.name,
        "metric": prepared.job.metric,
    }
