"""Runs: converged, over-fitted, diverged, stuck, too short; and the seam to the simulator."""
# ruff: noqa: E501

import json
import subprocess

import pytest

from fitune.doctor import diagnose, diagnose_log, diagnose_run
from fitune.doctor.simulator import ask_simulator
from fitune.values import Event, Refusal

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 384.00 MiB. GPU 0 has a total capacity of 11.76 GiB of which "
    "200.69 MiB is free. Of the allocated memory 11.20 GiB is allocated by PyTorch, and 60.00 MiB is reserved by PyTorch but unallocated.\n"
)


def write_run(folder, losses, evaluations, rate=3e-5, reason="finished", torn=False):
    """A run's events: ten steps an epoch, an evaluation (loss, f1) behind each."""
    lines, step = [], 0
    for epoch, (loss_course, (dev_loss, f1)) in enumerate(zip(losses, evaluations, strict=True)):
        for loss in loss_course:
            step += 1
            data = {"loss": loss, "learning_rate": rate}
            lines.append(Event(kind="step", step=step, time=float(step), epoch=float(epoch), data=data))
        data = {"split": "dev", "metrics": {"loss": dev_loss, "f1": f1}, "best": True}
        lines.append(Event(kind="evaluation", step=step, time=float(step), data=data))
    lines.append(Event(kind="stopped", step=step, time=float(step), data={"reason": reason, "exit_code": 0}))
    text = "".join(event.model_dump_json() + "\n" for event in lines)
    (folder / "events.jsonl").write_text(text + ('{"kind": "st' if torn else ""), encoding="utf-8")
    return folder


def falling(start, factor, epochs):
    return [[start * factor**epoch * (1 - 0.02 * i) for i in range(10)] for epoch in range(epochs)]


CASES = {
    "converged": ("FT528", falling(0.8, 0.5, 5), [(0.4, 0.7), (0.3, 0.8), (0.3, 0.901), (0.3, 0.902), (0.3, 0.903)]),
    "over-fitted": ("FT506", falling(0.8, 0.4, 5), [(0.4, 0.8), (0.35, 0.82), (0.45, 0.82), (0.6, 0.815), (0.8, 0.81)]),
    "too few steps": ("FT509", falling(1.2, 0.6, 3), [(0.9, 0.5), (0.7, 0.62), (0.5, 0.7)]),
    "diverged": (
        "FT507",
        [*falling(1.0, 0.5, 3), [1.5] * 10, [1.6] * 10],
        [(1, 0.4), (0.8, 0.5), (0.7, 0.5), (2, 0.1), (2, 0)],
    ),
    "stuck": ("FT508", [[2.3 - 0.001 * i for i in range(10)]] * 4, [(2.3, 0.1)] * 4),
}


@pytest.mark.parametrize("name", CASES)
def test_the_course_of_a_run_is_judged(name, tmp_path):
    code, losses, evaluations = CASES[name]
    found = [finding.code for finding in diagnose_run(write_run(tmp_path, losses, evaluations)).findings]
    assert found[:1] == [code]


def test_a_rate_too_high_is_named(tmp_path):
    run = write_run(tmp_path, [[0.7] * 10] * 3, [(0.69, 0.5)] * 3, rate=1e-3)
    finding = next(f for f in diagnose_run(run).findings if f.code == "FT510")
    assert "0.001" in finding.title


def test_a_loss_that_is_no_number_comes_first_and_a_torn_line_is_passed_over(tmp_path):
    run = write_run(tmp_path, [[0.7] * 9 + ["nan"]], [(0.7, 0.5)], torn=True)
    assert diagnose_run(run).findings[0].code == "FT501"


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"events\.jsonl"):
        diagnose(str(tmp_path))
    with pytest.raises(Refusal):
        diagnose(str(tmp_path / "missing.log"))


def test_without_the_simulator_nothing_is_said_to_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("fitune.doctor.simulator.ask_simulator", lambda job: None)
    finding = diagnose_log(OOM, job=tmp_path / "job.toml").findings[0]
    assert finding.fixes[0].settings == {}
    assert "predicted" not in finding.fixes[0].text


def test_what_the_simulator_says_becomes_a_fix(tmp_path, monkeypatch):
    plan = {
        "fit": {"micro_batch": 4, "attention": "sdpa"},
        "estimate": {"predicted_peak_bytes": 5 * 2**30},
        "card": {"memory_bytes": 11 * 2**30},
    }
    monkeypatch.setattr("fitune.doctor.simulator.ask_simulator", lambda job: plan)
    fix = diagnose_log(OOM, job=tmp_path / "job.toml").findings[0].fixes[0]
    assert fix.settings == {"micro_batch": 4, "attention": "sdpa"}
    plan["estimate"]["predicted_peak_bytes"] = 12 * 2**30
    assert diagnose_log(OOM, job=tmp_path / "job.toml").findings[0].fixes[0].settings == {}


@pytest.mark.parametrize("answer", [(1, b""), (0, b"no json"), (0, b"[1]"), (0, b'{"plans": []}')])
def test_a_simulator_that_fails_is_none(answer, monkeypatch, tmp_path):
    code, out = answer
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, code, out, b""))
    assert ask_simulator(tmp_path / "job.toml") is None


def test_a_simulator_that_answers_is_read(monkeypatch, tmp_path):
    told = json.dumps({"plans": [{"fit": {}}], "unfit": []}).encode()
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, told, b""))
    assert ask_simulator(tmp_path / "job.toml") == {"fit": {}}
