"""How a step runs fastest on this device: packed or padded, and in how large passes. Measured on the job's own steps.

Whatever is chosen, a step holds the examples that the seed drew and its gradient is the same. The figures go into the
run's "started" event; they are kept per device, model, versions and lengths, so that the next run need not measure.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fitune.hf import CannotPack, Columns, Step, cache_directory, to_device
from fitune.messages import _
from fitune.microbatch import Budget, Stepper
from fitune.tasks import Learner
from fitune.values import Fit

CPU_TOKENS = (512, 1024, 2048)
"""Padded tokens a pass that are tried on CPU."""
SHARE_OF_RUN = 0.02
"""The measurement may cost so much of the run that it serves."""
ROUNDS = 2
PACKED_PAYS = 0.98
"""Packing is chosen when it takes at most so much of the padded time."""


@dataclass(frozen=True)
class Pace:
    """What was chosen, and why."""

    attention: str
    """"packed" or "sdpa" (padded)."""
    micro_batch_tokens: int | None
    reason: str
    measured_seconds: dict[str, float] = field(default_factory=dict)
    """Way ("packed 1024") -> seconds of one step's loss and gradient; CPU-seconds on CPU."""
    compiled: bool = False
    """Whether the model trains compiled (padded)."""
    compile_seconds: float | None = None
    """What compiling took, in or before this run; None: it was not tried."""
    compile_note: str = ""
    """Whether compiling paid, for the user; empty: it was not asked for."""
    compile_failure: str = ""
    """Why the model does not compile here; empty: it does, or it was not tried."""

    def facts(self) -> dict[str, Any]:
        """For the "started" event."""
        return {
            "attention": self.attention,
            "micro_batch_tokens": self.micro_batch_tokens,
            "reason": self.reason,
            "measured_seconds": {way: round(seconds, 5) for way, seconds in self.measured_seconds.items()},
            "compiled": self.compiled,
            "compile_seconds": None if self.compile_seconds is None else round(self.compile_seconds, 2),
            "compile_note": self.compile_note,
        }


def choose_pace(
    learner: Learner, columns: Columns, fit: Fit, *, batch_size: int, steps_total: int, open_fields: set[str]
) -> Pace:
    """The fastest way through this job's steps; leaves weights, gradients and random generators as they were.

    Args:
        open_fields: which of ``attention`` and ``micro_batch_tokens`` may be chosen; the other stays as ``fit`` has it.
    """
    if "attention" not in open_fields or not len(columns):
        return Pace(fit.attention, fit.micro_batch_tokens, _("as asked for"))
    step = typical_step(columns, batch_size)
    device = next(learner.parameters()).device
    tokens: Sequence[int | None] = [fit.micro_batch_tokens]
    if device.type == "cpu" and "micro_batch_tokens" in open_fields:
        whole = len(step.lengths) * max(step.lengths)
        tokens = [t for t in CPU_TOKENS if t < whole] + [next((t for t in CPU_TOKENS if t >= whole), CPU_TOKENS[-1])]
        tokens = sorted(set(tokens), key=lambda t: t or 0)
    ways = [(attention, most) for most in tokens for attention in ("sdpa", "packed")]
    key = key_of(learner, columns, fit, batch_size, ways)
    kept = read_figures(key)
    if kept is not None and set(kept) == {name_of(*way) for way in ways}:
        return _best(kept, ways, fit, _("measured on this device before"))
    if steps_total * SHARE_OF_RUN < ROUNDS * len(ways) + 1:
        return Pace(fit.attention, fit.micro_batch_tokens, _("too short a run to be worth measuring"))
    try:
        measured = measure(learner, step, ways)
    except CannotPack as error:
        return Pace(fit.attention, fit.micro_batch_tokens, str(error))
    keep_figures(key, measured)
    return _best(measured, ways, fit, _("measured on this device"))


def measure(learner: Learner, step: Step, ways: Sequence[tuple[str, int | None]]) -> dict[str, float]:
    """Seconds of the step's loss and gradient each way: the least of interleaved rounds. The learner ends padded.

    Raises:
        CannotPack: the model does not run without padding.
    """
    was_training = learner.training
    learner.train()
    seconds: dict[str, float] = {}
    try:
        for _round in range(ROUNDS):
            for attention, tokens in ways:
                if attention == "packed":
                    learner.run_packed()
                else:
                    learner.run_padded()
                way = name_of(attention, tokens)
                seconds[way] = min(step_seconds(learner, step, tokens), seconds.get(way, float("inf")))
    finally:
        learner.run_padded()
        learner.train(was_training)
    return seconds


def step_seconds(learner: Learner, step: Step, tokens: int | None) -> float:
    """Seconds of the step's loss and gradient, undone afterwards, as the learner is set."""
    device = next(learner.parameters()).device
    stepper = Stepper(
        lambda inputs: learner(**to_device(learner.pack(inputs), device))[0], learner, budget=Budget(tokens)
    )
    begin = _now(device)
    stepper.rehearse(step)
    return _now(device) - begin


def name_of(attention: str, tokens: int | None) -> str:
    """ "packed 1024", "padded whole"."""
    return f"{'packed' if attention == 'packed' else 'padded'} {tokens or 'whole'}"


def _best(measured: dict[str, float], ways: Sequence[tuple[str, int | None]], fit: Fit, reason: str) -> Pace:
    least = {
        name: min((w for w in ways if (w[0] == "packed") == packed), key=lambda w: measured[name_of(*w)])
        for name, packed in (("packed", True), ("padded", False))
    }
    seconds = {name: measured[name_of(*way)] for name, way in least.items()}
    chosen = "packed" if seconds["packed"] <= PACKED_PAYS * seconds["padded"] else "padded"
    attention, tokens = least[chosen]
    return Pace(attention, tokens, reason, measured)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        return time.perf_counter()
    # What this process worked, whatever else the machine does at the same time.
    return time.process_time()


def typical_step(columns: Columns, batch_size: int) -> Step:
    """A step of the usual size, drawn by a generator of its own; of some, the one of middle length."""
    draw = np.random.default_rng(0)
    size = min(batch_size, len(columns))
    steps = [Step(columns, draw.permutation(len(columns))[:size]) for _draw in range(5)]
    steps = sorted((step for step in steps if step.total_weight), key=lambda step: step.tokens)
    return steps[len(steps) // 2] if steps else Step(columns, np.arange(size))


# -- kept figures -----------------------------------------------------------------------------------------------


def key_of(
    learner: Learner, columns: Columns, fit: Fit, batch_size: int, ways: Sequence[tuple[str, int | None]]
) -> str:
    """Everything that the figures depend on; lengths in steps of a tenth."""
    import transformers

    config = {k: v for k, v in learner.config.to_dict().items() if k not in ("id2label", "label2id", "_name_or_path")}
    quantiles = np.quantile(columns.lengths_W, [0.1, 0.5, 0.9])
    device = next(learner.parameters()).device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    facts: list[Any] = [
        name,
        os.cpu_count(),
        torch.get_num_threads(),
        torch.__version__,
        transformers.__version__,
        config,
        fit.model_dump(exclude={"attention", "micro_batch_tokens", "compile"}),
        learner.crf is not None,
        batch_size,
        np.round(np.log(quantiles) / np.log(1.1)).tolist(),
        list(ways),
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _path(key: str) -> Path:
    return cache_directory() / "pace" / f"{key}.json"


def read_figures(key: str) -> dict[str, float] | None:
    try:
        return json.loads(_path(key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # not measured yet, or half a file of a crash: it is measured again


def keep_figures(key: str, measured: dict[str, float]) -> None:
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(measured), encoding="utf-8")
        partial.replace(path)
    except OSError:
        return  # a cache that cannot be written costs the next run its seconds, nothing else
