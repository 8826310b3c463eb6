"""Out of memory in ``train``: the heaviest rows first, the exact knobs, and the state saved when none is left."""

import pytest
import torch

from fitune.checkpoint import Store
from fitune.hf import StepData
from fitune.microbatch import DoesNotFit
from fitune.runs import Run
from fitune.tasks import Learner
from fitune.training import Saving, train
from fitune.training.rehearsal import heaviest_step
from fitune.values import Fit

from .test_resume import job_of, weights
from .tiny import write_model, write_rows


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    write_model(folder / "model")
    write_rows(folder / "train.tsv")
    write_rows(folder / "dev.tsv", 20, seed=1)
    return folder


def memory(monkeypatch, too_much):
    """The forward pass of a micro-batch runs out of memory where ``too_much(learner, rows, columns)``."""
    forward = Learner.forward

    def checked(self, *arguments, **inputs):
        if self.training and too_much(self, *inputs["input_ids"].shape):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return forward(self, *arguments, **inputs)

    monkeypatch.setattr(Learner, "forward", checked)


def of_kind(run, kind):
    return [event for event in run.events() if event.kind == kind]


def test_the_heaviest_rows_are_tried_before_the_first_step(place, tmp_path, monkeypatch):
    plain = train(job_of(place, epochs=1), run_directory=tmp_path / "plain", fit=Fit(micro_batch_tokens=40))
    steps = []
    monkeypatch.setattr("fitune.training.rehearsal.worthwhile", lambda _device: True)
    memory(monkeypatch, lambda _learner, rows, columns: rows * columns > 42)
    run = train(
        job_of(place, epochs=1),
        run_directory=tmp_path / "run",
        fit=Fit(micro_batch_tokens=80),
        listeners=[steps.append],
    )
    changes = of_kind(run, "micro_batch")
    assert changes
    assert {event.step for event in changes} == {0}
    kinds = [event.kind for event in steps]
    assert kinds.index("micro_batch") < kinds.index("step")
    first, again = (next(e for e in of_kind(r, "step")) for r in (plain, run))
    # Trying it leaves no trace: generators and gradients are as before.
    assert first.step == again.step == 1


def test_trying_leaves_no_trace(place, tmp_path, monkeypatch):
    plain = train(job_of(place, epochs=1), run_directory=tmp_path / "plain")
    monkeypatch.setattr("fitune.training.rehearsal.worthwhile", lambda _device: True)
    run = train(job_of(place, epochs=1), run_directory=tmp_path / "run")
    assert weights(run) == weights(plain)


def test_a_row_that_does_not_fit_alone_turns_on_recomputation(place, tmp_path, monkeypatch):
    plain = train(job_of(place, epochs=1), run_directory=tmp_path / "plain", fit=Fit(micro_batch=1))
    memory(
        monkeypatch,
        lambda learner, rows, columns: rows > 1 or (columns > 15 and not learner.model.is_gradient_checkpointing),
    )
    run = train(job_of(place, epochs=1), run_directory=tmp_path / "run", fit=Fit(micro_batch=1))
    assert "knob: checkpoint_every" in [event.data["reason"] for event in of_kind(run, "micro_batch")]
    assert run.events()[-1].data["reason"] == "finished"
    assert weights(run) == weights(plain)


def test_when_nothing_helps_the_state_is_saved_and_the_same_command_goes_on(place, tmp_path, monkeypatch):
    plain = train(job_of(place), run_directory=tmp_path / "plain")
    calls = []

    def from_step_four(learner, rows, columns):
        calls.append(rows)
        return len(of_kind(Run(tmp_path / "run"), "step")) >= 4

    with monkeypatch.context() as patch:
        memory(patch, from_step_four)
        with pytest.raises(DoesNotFit) as refused:
            train(job_of(place), run_directory=tmp_path / "run", saving=Saving(each_epoch=False))
    assert refused.value.code == "FT301"
    run = Run(tmp_path / "run")
    assert (run.events()[-1].kind, run.events()[-1].data["reason"]) == ("stopped", "failed")
    assert Store(run.checkpoints_path).newest().step == 4
    run = train(job_of(place), run_directory=tmp_path / "run")
    assert next(e for e in run.events() if e.kind == "resumed").step == 4
    assert run.events()[-1].data["reason"] == "finished"
    ours, theirs = (r.evaluation.splits["dev"].metrics["loss"] for r in (run, plain))
    # The micro-batch that the failures left is another one: the same sums in another order, other dropout masks.
    assert ours == pytest.approx(theirs, abs=0.2)


def test_the_heaviest_step_holds_the_longest_rows(place):
    from fitune.training.preparing import prepare

    columns = StepData(prepare(job_of(place)).train.columns).columns
    step = heaviest_step(columns, 8)
    assert len(step.examples) == 8
    assert max(step.lengths) == columns.lengths_W.max()
    assert min(step.lengths) >= sorted(columns.lengths_W)[-8]
