"""The same command goes on: bit for bit, from the middle of an epoch, after any end."""

import hashlib
import os
import signal
import time

import pytest

from fitune.checkpoint import Locked
from fitune.runs import Run
from fitune.training import AlreadyFinished, Saving, choose_run, train
from fitune.values import Job, Refusal

from .tiny import write_model, write_rows


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    write_model(folder / "model")
    write_rows(folder / "train.tsv")
    write_rows(folder / "dev.tsv", 20, seed=1)
    return folder


def job_of(place, **changes):
    fields = {"train": str(place / "train.tsv"), "dev": str(place / "dev.tsv"), "model": str(place / "model")}
    return Job(
        **{**fields, "batch_size": 8, "epochs": 3, "max_length": 32, "patience": 0, "learning_rate": 1e-3, **changes}
    )


def weights(run):
    return hashlib.sha256((run.model_path / "model.safetensors").read_bytes()).hexdigest()


def wait_for_checkpoints(run, count):
    deadline = time.monotonic() + 60
    while len(list((run / "checkpoints").glob("[0-9]*"))) < count:
        assert time.monotonic() < deadline, "the checkpoints were not written"
        time.sleep(0.02)


class Stop(Exception):
    pass


def stop_at(step):
    """Asks the run to stop once the step is told of; it ends with the step after."""
    asked = []

    def listen(event):
        if event.kind == "step" and event.step >= step - 1 and not asked:
            asked.append(event)
            os.kill(os.getpid(), signal.SIGTERM)

    return listen


@pytest.fixture(scope="module")
def undisturbed(place):
    return train(job_of(place), run_directory=place / "undisturbed")


@pytest.mark.parametrize("step", [3, 8, 17])
def test_a_stopped_run_goes_on_to_the_same_bits(place, undisturbed, tmp_path, step):
    run = train(job_of(place), run_directory=tmp_path / "run", listeners=[stop_at(step)])
    last = run.events()[-1]
    assert (last.data["reason"], last.data["exit_code"]) == ("interrupted", 143)
    assert last.step == step
    run = train(job_of(place), run_directory=tmp_path / "run")
    kinds = [event.kind for event in run.events()]
    assert "resumed" in kinds
    assert run.events()[-1].data["reason"] == "finished"
    assert weights(run) == weights(undisturbed)
    ours, theirs = run.evaluation.splits["dev"].metrics, undisturbed.evaluation.splits["dev"].metrics
    assert ours == theirs


def test_a_crash_between_saves_goes_on_from_the_last_one(place, undisturbed, tmp_path):
    def crash(event):
        if event.kind == "step" and event.step == 13:
            wait_for_checkpoints(tmp_path / "run", 2)  # they are written in the background
            raise Stop

    with pytest.raises(Stop):
        train(job_of(place), run_directory=tmp_path / "run", listeners=[crash], saving=Saving(every_steps=5))
    run = train(job_of(place), run_directory=tmp_path / "run")
    assert next(e for e in run.events() if e.kind == "resumed").step == 10
    assert weights(run) == weights(undisturbed)


def test_a_damaged_newest_checkpoint_is_named_and_the_one_before_taken(place, undisturbed, tmp_path):
    def crash(event):
        if event.kind == "step" and event.step == 13:
            wait_for_checkpoints(tmp_path / "run", 2)  # they are written in the background
            raise Stop

    with pytest.raises(Stop):
        train(job_of(place), run_directory=tmp_path / "run", listeners=[crash], saving=Saving(every_steps=5))
    *_, last = sorted((tmp_path / "run" / "checkpoints").iterdir())
    os.truncate(last / "arrays.safetensors", 1000)
    run = train(job_of(place), run_directory=tmp_path / "run")
    warning = next(e for e in run.events() if e.data.get("code") == "FT602")
    assert last.name in warning.data["text"]
    assert next(e for e in run.events() if e.kind == "resumed").step == 5
    assert weights(run) == weights(undisturbed)


def test_a_finished_run_says_so_and_another_job_is_refused_by_difference(place, undisturbed):
    directory = undisturbed.directory
    with pytest.raises(AlreadyFinished) as finished:
        train(job_of(place), run_directory=directory)
    assert finished.value.exit_code == 0
    with pytest.raises(Refusal, match=r"learning_rate: 0\.001 then, 0\.01 now") as other:
        train(job_of(place, learning_rate=1e-2), run_directory=directory)
    assert other.value.code == "FT604"
    write_rows(place / "other.tsv", seed=9)
    with pytest.raises(Refusal, match="train: the content has changed"):
        train(job_of(place, train=str(place / "other.tsv")), run_directory=directory)
    assert undisturbed.events()[-1].kind == "stopped"


def test_fresh_keeps_the_old_run_beside(place, tmp_path):
    directory = tmp_path / "run"
    old = train(job_of(place), run_directory=directory, listeners=[stop_at(2)])
    before = len(old.events())
    train(job_of(place), run_directory=directory, listeners=[stop_at(3)], fresh=True)
    assert len(Run(tmp_path / "run.old-1").events()) == before
    assert Run(directory).events()[-1].step == 3


def test_without_a_directory_the_unfinished_run_of_the_same_job_is_found(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = train(job_of(place), listeners=[stop_at(2)])
    assert choose_run(job_of(place), None).directory == first.directory
    assert choose_run(job_of(place, seed=1), None).directory != first.directory
    assert choose_run(job_of(place), None, fresh=True).directory != first.directory


def test_a_second_process_is_refused(place, tmp_path):
    directory = tmp_path / "run"
    errors = []

    def second(event):
        if event.kind == "step" and not errors:
            try:
                train(job_of(place), run_directory=directory)
            except Locked as error:
                errors.append(error)
            os.kill(os.getpid(), signal.SIGTERM)

    train(job_of(place), run_directory=directory, listeners=[second])
    assert f"process {os.getpid()}" in str(errors[0])


def test_deadline_and_budget_end_with_their_own_codes(place, tmp_path):
    ends = [(Saving(deadline=time.time()), "deadline", 75), (Saving(most_seconds=0.0), "budget", 76)]
    for number, (saving, reason, code) in enumerate(ends):
        run = train(job_of(place), run_directory=tmp_path / str(number), saving=saving)
        assert (run.events()[-1].data["reason"], run.events()[-1].data["exit_code"]) == (reason, code)
        assert any(event.kind == "checkpoint" for event in run.events())
