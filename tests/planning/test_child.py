"""The child process: plans come back whole, refusals as refusals, a dead child as an error with its words."""

import json
from pathlib import Path

import pytest

from fitune.catalog import card_of
from fitune.planning import child
from fitune.planning.past import Correction, past_corrections
from fitune.planning.workload import read_workload
from fitune.runs import Evaluation, Run
from fitune.values import Estimate, Event, Fidelity, Fit, Job, Plan, Refusal


def rows(folder: Path, count: int = 60) -> Path:
    path = folder / "train.jsonl"
    lines = [{"text": f"第{n}条评论，内容很好" * (1 + n % 3), "label": "好" if n % 2 else "坏"} for n in range(count)]
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    return path


def test_lengths_by_characters_where_no_tokenizer_is(tmp_path: Path) -> None:
    job = Job(train=str(rows(tmp_path)), model="rbt3", dev_fraction=0.2)
    workload = read_workload(job)
    assert workload.basis == "characters"
    assert workload.job.task == "classification"
    assert workload.rows == len(workload.lengths_W)
    assert workload.dev_tokens > 0
    assert workload.longest == 2 + 3 * len("第10条评论，内容很好")


def test_the_rows_are_those_that_training_takes_in_its_order(tmp_path: Path) -> None:
    splits = pytest.importorskip("fitune.training.splits")
    job = Job(train=str(rows(tmp_path)), model="rbt3", dev_fraction=0.2)
    taken = splits.read_splits(job).train
    assert read_workload(job).lengths_W.tolist() == [2 + len(example.text) for example in taken]


def test_a_refusal_comes_back_from_the_child(tmp_path: Path) -> None:
    job = Job(train=str(rows(tmp_path)), model="owner/no-such-model")
    with pytest.raises(Refusal) as refused:
        child.plan(job, "t4")
    assert refused.value.code == "FT352"


def test_a_dead_child_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child.sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="ended with code 1"):
        child.plan_all(Job(train="x"), cards=[])


def test_past_runs_correct_the_next_prediction(tmp_path: Path) -> None:
    card = card_of("t4")
    for number, measured in enumerate((200.0, 100.0)):
        job = Job(train="x")
        predicted = 100.0 if number == 0 else 200.0  # The second was corrected by the first.
        estimate = Estimate(predicted_peak_bytes=1, predicted_seconds=predicted)
        plan = Plan(job=job, card=card, fit=Fit(), fidelity=Fidelity.EXACT, estimate=estimate)
        run = Run.create(tmp_path / f"r-{number}", job, plan)
        run.append(Event.model_validate({"kind": "started", "step": 0, "time": 0, "data": {"steps_total": 10}}))
        run.append(Event.model_validate({"kind": "stopped", "step": 10 if number == 0 else 5, "time": 9, "data": {}}))
        run.close()
        run.write_evaluation(
            Evaluation(task="ner", labels=("A",), metric="f1", splits={}, device="Tesla T4", measured_seconds=measured)
        )
    assert past_corrections(tmp_path) == {"t4": Correction(2.0, 2)}
    assert past_corrections(tmp_path / "nothing") == {}
