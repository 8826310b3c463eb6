"""Whether this job trains compiled: tried on one of its own steps, and kept only where that is the fastest way.

Compiling takes from seconds to minutes and may make a step slower (0.85 x on a CPU), so nothing is assumed: the model
is compiled, the step is run, and what it took is compared with the other ways. When that is known the compile time is
spent; what counts from then on is the time of the steps that are left. A later run of the same job knows both figures
before, and tries only what they promise to pay.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fitune.hf import Columns, Step, reason_of
from fitune.messages import _
from fitune.tasks import Learner
from fitune.training.pacing import (
    ROUNDS,
    Pace,
    keep_figures,
    key_of,
    measure,
    read_figures,
    step_seconds,
    typical_step,
)
from fitune.values import Fit

COMPILED_PAYS = 0.95
"""The compiled way is chosen when it takes at most so much of the time of the fastest other one."""


@dataclass(frozen=True)
class Trial:
    """A compiled model on one step."""

    seconds: float
    """Of one step, once compiled."""
    compile_seconds: float
    """What the first call took beyond a later one."""


def settle_compiled(
    learner: Learner,
    columns: Columns,
    fit: Fit,
    pace: Pace,
    *,
    batch_size: int,
    steps_total: int,
    open_fields: set[str],
    settled: bool = False,
) -> Pace:
    """``pace``, or the compiled way where it is faster; the learner trains compiled then.

    Args:
        fit: as asked for, with ``compile``.
        pace: the best of the other ways.
        settled: an earlier process of this run has chosen; what it chose is not measured again.
    """
    if not len(columns):
        return pace
    if pace.attention == "packed" and "attention" not in open_fields:
        return replace(
            pace, compile_note=_("torch.compile is not tried: packed passes were asked for, and run without")
        )
    attention = "sdpa" if fit.attention == "packed" else fit.attention
    step = typical_step(columns, batch_size)
    if settled:
        return _as_before(learner, step, pace)
    reference = dict(pace.measured_seconds)
    if not reference:
        way = (pace.attention, pace.micro_batch_tokens)
        reference = measure(learner, step, [way])
    padded = {way: seconds for way, seconds in reference.items() if way.startswith("padded ")}
    tokens = _tokens_of(min(padded, key=lambda way: padded[way])) if padded else pace.micro_batch_tokens
    other = min(reference, key=lambda way: reference[way])
    pace = replace(pace, measured_seconds=reference)
    key = key_of(learner, columns, fit, batch_size, [("compiled", tokens)])
    known = _known(key)
    if known is not None and not _promises(known, reference[other], steps_total):
        return replace(pace, compile_seconds=known.compile_seconds, compile_note=_not_kept(known, other, reference))
    learner.run_compiled()
    try:
        trial = try_compiled(learner, step, tokens)
    except Exception as error:  # noqa: BLE001 - the same step has just run without the compiler: it is to blame
        learner.run_uncompiled()
        return replace(pace, compile_failure=reason_of(error))
    keep_figures(key, {"compiled": trial.seconds, "compile": trial.compile_seconds})
    figures = {**reference, f"compiled {tokens or 'whole'}": trial.seconds}
    pace = replace(pace, measured_seconds=figures, compile_seconds=trial.compile_seconds)
    if trial.seconds > COMPILED_PAYS * reference[other]:
        learner.run_uncompiled()
        return replace(pace, compile_note=_not_kept(trial, other, reference))
    note = _kept(trial, reference[other], steps_total)
    return replace(pace, attention=attention, micro_batch_tokens=tokens, compiled=True, compile_note=note)


def try_compiled(learner: Learner, step: Step, tokens: int | None) -> Trial:
    """Compile on the first run of the step, and run it some times more. Leaves no trace but the compiled code."""
    was_training = learner.training
    learner.train()
    try:
        begin = time.perf_counter()
        step_seconds(learner, step, tokens)
        # By the clock: compilers work in processes of their own, whose time is not this process's.
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        seconds = step_seconds(learner, step, tokens)
        later = time.perf_counter() - begin
        seconds = min([seconds, *(step_seconds(learner, step, tokens) for _round in range(ROUNDS - 1))])
    finally:
        learner.train(was_training)
    return Trial(seconds, max(0.0, first - later))


def _as_before(learner: Learner, step: Step, pace: Pace) -> Pace:
    """Compiled, as the run began. The same step first: what is compiled depends on the shape that comes first."""
    learner.run_compiled()
    try:
        trial = try_compiled(learner, step, pace.micro_batch_tokens)
    except Exception as error:  # noqa: BLE001 - it ran on this step when the run began
        learner.run_uncompiled()
        return replace(pace, compile_failure=reason_of(error))
    return replace(pace, compiled=True, compile_seconds=trial.compile_seconds, compile_note=_("compiled, as it began"))


def _known(key: str) -> Trial | None:
    figures = read_figures(key)
    if figures is None or set(figures) != {"compiled", "compile"}:
        return None
    return Trial(figures["compiled"], figures["compile"])


def _promises(known: Trial, other_seconds: float, steps_total: int) -> bool:
    """Whether steps and compiling together are likely to take less than the steps of the other way."""
    faster = known.seconds <= COMPILED_PAYS * other_seconds
    return faster and known.seconds * steps_total + known.compile_seconds < other_seconds * steps_total


def _kept(trial: Trial, other_seconds: float, steps_total: int) -> str:
    won_back = trial.compile_seconds / (other_seconds - trial.seconds)
    figures = {
        "seconds": f"{trial.seconds:.3g}",
        "other": f"{other_seconds:.3g}",
        "compile": f"{trial.compile_seconds:.0f}",
        "steps": f"{won_back:.0f}",
        "total": steps_total,
    }
    if won_back <= steps_total:
        return _(
            "torch.compile is kept: {seconds} s a step instead of {other}; the {compile} s of compiling are won back"
            " after {steps} of {total} steps",
            **figures,
        )
    return _(
        "torch.compile is kept: {seconds} s a step instead of {other}; but the {compile} s of compiling did not pay:"
        " that takes {steps} steps, and this run has {total}",
        **figures,
    )


def _not_kept(trial: Trial, other: str, reference: Mapping[str, float]) -> str:
    return _(
        "torch.compile is not kept: {seconds} s a step, {other} s without it ({way}); compiling takes {compile} s",
        seconds=f"{trial.seconds:.3g}",
        other=f"{reference[other]:.3g}",
        way=other,
        compile=f"{trial.compile_seconds:.0f}",
    )


def _tokens_of(way: str) -> int | None:
    tokens = way.rpartition(" ")[2]
    return None if tokens == "whole" else int(tokens)
