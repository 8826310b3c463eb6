"""Recorded machines: the advice for each, pinned."""

import pytest

from fitune.doctor import examine, rule_of
from fitune.doctor.examination import TOPICS
from fitune.machine import Machine, choose_wheel, wheels
from fitune.values import Job

from .machines import MACHINES, NO_CARD, machine


def test_there_are_twenty_five():
    assert len(MACHINES) >= 25


@pytest.mark.parametrize("name", MACHINES)
def test_the_advice_is_pinned(name):
    expected = MACHINES[name]
    found = examine(expected.machine)
    said = sorted((line.code, line.status) for line in found.lines if line.code)
    assert said == sorted(expected.said), [line for line in found.lines if line.code]
    assert found.exit_code == expected.exit_code
    if expected.command:
        first = next(line for line in found.lines if line.code == expected.said[0][0])
        assert expected.command in (first.command or ""), first


@pytest.mark.parametrize("name", MACHINES)
def test_a_recorded_machine_survives_json(name):
    recorded = MACHINES[name].machine
    assert Machine.model_validate_json(recorded.model_dump_json()) == recorded


@pytest.mark.parametrize("name", MACHINES)
def test_every_warning_says_what_to_do(name):
    for line in examine(MACHINES[name].machine).lines:
        assert line.topic in TOPICS
        if line.status in {"warning", "problem"}:
            assert line.next_step
            assert line.code
            assert rule_of(line.code)


def test_nothing_needs_root():
    for expected in MACHINES.values():
        for line in examine(expected.machine).lines:
            assert "sudo" not in f"{line.next_step} {line.command}"


def test_a_wheel_is_advised_only_where_driver_and_cards_run_it():
    for expected in MACHINES.values():
        have = expected.machine
        capabilities = tuple(d.compute_capability for d in have.devices if d.compute_capability)
        for line in examine(have).lines:
            wheel = next((w for w in wheels() if line.command and f"/whl/{w.tag}" in line.command), None)
            if wheel is not None:
                assert wheel == choose_wheel(have.driver.newest_cuda, capabilities)
                assert all(wheel.runs_on(capability) for capability in capabilities)


def test_other_peoples_processes_are_left_alone():
    lines = [line for line in examine(MACHINES["two users on one card"].machine).lines if line.code]
    foreign = next(line for line in lines if "4711" in line.evidence[0])
    own = next(line for line in lines if "5200" in line.evidence[0])
    assert own.command == "kill 5200"
    assert "kill" not in (foreign.command or "")


def test_a_job_is_checked_too(tmp_path):
    (tmp_path / "train.csv").write_text("text,label\n", encoding="utf-8")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}", encoding="utf-8")
    job = Job(train="train.csv", dev="dev.csv", model="model")
    lines = examine(machine(), job, job_path=None).lines
    assert any(line.code == "FT193" and line.status == "problem" for line in lines)
    path = tmp_path / "job.toml"
    lines = [line for line in examine(machine(), job, job_path=path).lines if line.topic == "job"]
    assert [line.status for line in lines[:3]] == ["ok", "problem", "problem"]
    assert "model.safetensors, vocab.txt" in lines[2].text


def test_nothing_is_said_to_fit_without_the_simulator(tmp_path, monkeypatch):
    monkeypatch.setattr("fitune.doctor.examination.ask_simulator", lambda path: None)
    (tmp_path / "train.csv").write_text("text,label\n", encoding="utf-8")
    lines = examine(machine(**NO_CARD), Job(train="train.csv", model="embedded"), job_path=tmp_path / "job.toml").lines
    last = lines[-1]
    assert last.status == "note"
    assert "not asked" in last.text
