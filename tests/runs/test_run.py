import json
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.runs import Run, new_run_directory
from fitune.values import Event, Fit, Job, Plan, Refusal


def step(number: int, **data: object) -> Event:
    return Event(kind="step", step=number, time=1000.0 + number, epoch=number / 10, data=dict(data))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "train-1", Job(train="train.json"))


def test_job_and_plan_come_back(tmp_path: Path) -> None:
    job = Job(train="数据.json", epochs=3)
    plan = Plan(job=job, card=None, fit=Fit(micro_batch=4), fidelity=0, estimate=None)
    Run.create(tmp_path / "x", job, plan)
    again = Run.open(tmp_path / "x")
    assert (again.job, again.plan, again.name, again.evaluation) == (job, plan, "x", None)


def test_events_come_back_in_order(run: Run) -> None:
    written = [step(n, loss=1 / (n + 1), 文本="第\n行") for n in range(5)]
    for event in written:
        run.append(event)
    assert Run.open(run.directory).events() == written


@given(cut=st.integers(1, 60))
@settings(max_examples=25)
def test_a_torn_last_line_is_left_out_and_then_cut_off(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    run = Run.create(tmp_path_factory.mktemp("torn") / "x", Job(train="a"))
    run.append(step(1))
    run.append(step(2))
    run.close()
    whole = run.events_path.read_bytes()
    run.events_path.write_bytes(whole[:-cut])
    kept = [step(1)]
    assert run.events() == kept
    run.append(step(3))
    assert run.events() == [*kept, step(3)]
    assert all(json.loads(line) for line in run.events_path.read_text().splitlines())


def test_a_torn_only_line_leaves_an_empty_file(run: Run) -> None:
    run.events_path.write_bytes(b'{"kind": "st' + b" " * 10_000)
    run.append(step(1))
    assert run.events() == [step(1)]


def test_a_foreign_line_is_named(run: Run) -> None:
    run.append(step(1))
    run.close()
    with run.events_path.open("ab") as file:
        file.write(b"hello\n")
    run.append(step(2))
    with pytest.raises(Refusal) as caught:
        run.events()
    assert caught.value.where.endswith("events.jsonl:2")
    assert "hello" in caught.value.found


def test_follow_sees_what_another_thread_writes_and_ends_with_the_run(run: Run) -> None:
    written = [step(n) for n in range(20)] + [Event(kind="stopped", step=20, time=1.0, data={"reason": "finished"})]

    def write() -> None:
        writer = Run.open(run.directory)
        for event in written:
            writer.append(event)

    thread = threading.Thread(target=write)
    thread.start()
    assert list(run.follow(poll_seconds=0.001)) == written
    thread.join()


def test_follow_goes_on_after_a_stop_that_was_resumed(run: Run) -> None:
    for kind in ("stopped", "resumed", "stopped"):
        run.append(Event(kind=kind, step=1, time=1.0))  # type: ignore[arg-type]
    assert len(list(run.follow(poll_seconds=0.001))) == 3


def test_follow_can_be_told_to_end(run: Run) -> None:
    run.append(step(1))
    assert list(run.follow(poll_seconds=0.001, until=lambda: True)) == [step(1)]


def test_a_second_run_in_the_same_directory_is_refused(run: Run) -> None:
    with pytest.raises(Refusal) as caught:
        Run.create(run.directory, Job(train="other.json"))
    assert "--out" in caught.value.next_step
    assert run.job.train == "train.json"


@pytest.mark.parametrize("make", [False, True])
def test_opening_what_is_no_run_is_refused(tmp_path: Path, make: bool) -> None:
    if make:
        (tmp_path / "x").mkdir()
    with pytest.raises(Refusal) as caught:
        Run.open(tmp_path / "x")
    assert caught.value.where.endswith("x")


def test_new_directories_count_up_and_are_never_shared(tmp_path: Path) -> None:
    made: list[Path] = []
    threads = [
        threading.Thread(target=lambda: made.append(new_run_directory("data/训练 集.json", tmp_path / "runs")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(p.name for p in made) == sorted(f"训练_集-{n}" for n in range(1, 9))
    assert new_run_directory("训练 集.json", tmp_path / "runs").name == "训练_集-9"
    assert new_run_directory("...", tmp_path / "runs").name == "run-1"
