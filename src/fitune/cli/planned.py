"""The plan of a run that is being trained: predicted in the background, so that the report shows it beside measured."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from fitune.values import Event


def plan_beside(directory: str | Path) -> Callable[[Event], None]:
    """A listener for ``training.train`` that writes plan.json once a run has started on a CUDA card.

    It waits for nothing and keeps nobody waiting: what is predicted runs in a child process of a daemon thread. A
    device that the catalogue does not know, no CUDA, or a compiled model (whose memory and time are measured; no
    simulation knows them) leaves the run without a plan.
    """

    def hear(event: Event) -> None:
        if event.kind != "started" or str(event.data.get("device", "cpu")).startswith("cpu"):
            return
        if (event.data.get("fit") or {}).get("compile"):
            return
        arguments = (Path(directory), str(event.data["device"]), dict(event.data.get("fit") or {}))
        threading.Thread(target=_write, args=arguments, daemon=True, name="plan").start()

    return hear


def _write(directory: Path, device: str, fit: dict[str, object]) -> None:
    from fitune.catalog import match_device
    from fitune.planning import estimate, past_corrections
    from fitune.runs import Run
    from fitune.values import Fit, Refusal

    card = match_device(device, 0)
    if card is None:
        return
    run = Run(directory)
    try:
        run.write_plan(estimate(run.job, card, Fit.model_validate(fit), corrections=past_corrections(directory.parent)))
    except (Refusal, RuntimeError) as problem:
        # A prediction that cannot be made must not disturb the run; the run's log says why there is none.
        with run.log_path.open("a", encoding="utf-8") as log:
            log.write(f"no plan: {problem}\n")
