"""plan.json beside a run: written in the background on a card that the catalogue knows, never on a CPU."""

import threading
from pathlib import Path

import pytest

from fitune.cli.planned import plan_beside
from fitune.runs import Run
from fitune.values import Card, Estimate, Event, Fidelity, Fit, Job, Plan, Refusal


def started(device: str, **fit: object) -> Event:
    data = {"device": device, "fit": {"precision": "fp16", **fit}}
    return Event.model_validate({"kind": "started", "step": 0, "time": 0, "data": data})


def wait() -> None:
    for thread in threading.enumerate():
        if thread.name == "plan":
            thread.join(20)


def estimate(job: Job, card: Card, fit: Fit, **_settings: object) -> Plan:
    told = Estimate(predicted_peak_bytes=7)
    return Plan(job=job, card=card, fit=fit, fidelity=Fidelity.ROUNDING, estimate=told)


def test_a_run_on_a_known_card_gets_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fitune.planning.estimate", estimate, raising=False)
    run = Run.create(tmp_path / "r-1", Job(train="x"))
    hear = plan_beside(run.directory)
    hear(started("Tesla T4"))
    wait()
    assert run.plan is not None
    assert run.plan.card is not None
    assert (run.plan.card.id, run.plan.fit.precision) == ("t4", "fp16")


def test_a_compiled_run_is_measured_and_not_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fitune.planning.estimate", estimate, raising=False)
    run = Run.create(tmp_path / "r-1", Job(train="x"))
    plan_beside(run.directory)(started("Tesla T4", compile=True))
    wait()
    assert run.plan is None


def test_a_cpu_or_an_unknown_card_gets_none_and_a_failure_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_settings: object) -> Plan:
        raise Refusal("no such model")

    monkeypatch.setattr("fitune.planning.estimate", refuse, raising=False)
    run = Run.create(tmp_path / "r-1", Job(train="x"))
    for device in ("cpu (x86_64)", "Voodoo 2", "Tesla T4"):
        plan_beside(run.directory)(started(device))
        wait()
    assert run.plan is None
    assert "no such model" in run.log_path.read_text(encoding="utf-8")
