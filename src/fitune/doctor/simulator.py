"""The one seam to the memory simulator: ``python -m fitune plan`` in a child process.

The doctor imports no torch, and the simulator needs it; so it is asked from outside, with a time limit. Where it
cannot be asked, nothing is said to fit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from fitune.doctor.log import Log
from fitune.doctor.oom import gib
from fitune.messages import _
from fitune.values import Fix

_job: ContextVar[Path | None] = ContextVar("fitune_doctor_job", default=None)


@contextmanager
def for_job(job: Path | None) -> Generator[None]:
    """Within it, memory advice asks the simulator about this job."""
    token = _job.set(job)
    try:
        yield
    finally:
        _job.reset(token)


def ask_simulator(job: Path, *arguments: str, limit_seconds: float = 120.0) -> dict[str, Any] | None:
    """The plan for a job on this machine's card as plain JSON; None: no answer, none in time, or nothing fits."""
    command = [sys.executable, "-m", "fitune", "plan", str(job), "--card", "mine", "--json", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=limit_seconds, check=False
        )
        answer = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError):
        return None
    if not isinstance(answer, dict):
        return None
    plans = answer.get("plans", [answer])
    first = plans[0] if isinstance(plans, list) and plans else None
    return first if isinstance(first, dict) else None


def _predicted_bytes(plan: dict[str, Any]) -> int | None:
    estimate = plan.get("estimate")
    value = estimate.get("predicted_peak_bytes") if isinstance(estimate, dict) else None
    return int(value) if isinstance(value, int) else None


def fitting_settings(log: Log) -> tuple[Fix, ...]:
    """What fits according to the simulator; without its answer () so that nothing is promised."""
    del log
    job = _job.get()
    plan = ask_simulator(job) if job is not None else None
    if not plan or not isinstance(plan.get("fit"), dict):
        return ()
    peak = _predicted_bytes(plan)
    card = plan.get("card")
    total = card.get("memory_bytes") if isinstance(card, dict) else None
    if peak is None or not isinstance(total, int) or peak > total:
        return ()
    names = ("micro_batch", "micro_batch_tokens", "precision", "attention", "checkpoint_every", "optimizer")
    settings = {name: plan["fit"][name] for name in names if plan["fit"].get(name) is not None}
    text = _(
        "these settings are predicted to need {peak} of {total}: {settings}",
        peak=gib(peak),
        total=gib(total),
        settings=", ".join(f"{name}={value}" for name, value in settings.items()),
    )
    return (Fix(safety="safe", text=text, settings=settings, command=f"fitune train {job}"),)
