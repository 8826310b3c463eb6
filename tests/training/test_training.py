"""A file goes in, a trained and usable model comes out."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from fitune.runs import Run
from fitune.training import train
from fitune.values import Event, Fit, Job, Refusal

DOCS = Path(__file__).resolve().parents[2] / "docs"


def stopped(run: Run) -> dict[str, Any]:
    last = run.events()[-1]
    assert last.kind == "stopped"
    return last.data


def check_files(directory: Path) -> None:
    """Each file of a run is in the docs, in both languages, and others may read what the umask lets them read."""
    plain = directory / "made-by-the-test"
    plain.touch()
    usual = plain.stat().st_mode
    plain.unlink()
    for language in ("en", "zh"):
        page = (DOCS / language / "reference" / "run-directory.md").read_text(encoding="utf-8")
        for path in directory.iterdir():
            assert f"`{path.name}{'/' if path.is_dir() else ''}`" in page, f"{language}: {path.name}"
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert {str(path) for path in files if path.stat().st_mode != usual} == set()
    assert len(files) > 10


@pytest.mark.parametrize("head", ["crf", "softmax"])
def test_entities(head: str, entity_file: str, tiny_model: str, tmp_path: Path) -> None:
    chosen: Any = {"epochs": 4, "learning_rate": 5e-3, "head": head, "patience": 0}
    job = Job(train=entity_file, test=entity_file, model=tiny_model, **chosen)
    run = train(job, run_directory=tmp_path / "run")
    assert stopped(run) == {"reason": "finished", "exit_code": 0}
    evaluation = run.evaluation
    assert evaluation is not None
    assert evaluation.splits["test"].metrics["f1"] > 0.9
    assert evaluation.splits["test"].coverage == 1.0
    assert evaluation.splits["test"].rows_seen > 80  # the test file is the training file here
    assert run.report_path.is_file()
    # What fitune chose stands in the run's job.toml.
    assert run.job.head == head
    assert run.job.metric == "f1"
    check_files(run.directory)
    # Predictions are slices of the source.
    for line in (run.directory / "test-predictions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert all(row["text"][e["start"] : e["end"]] == e["text"] for e in row["entities"])
    # Plain transformers loads it, label names and tokenizer and all.
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    model = AutoModelForTokenClassification.from_pretrained(run.model_path)
    assert set(model.config.id2label.values()) == {"O", "B-人", "I-人", "B-地", "I-地"}
    tokens = AutoTokenizer.from_pretrained(run.model_path)("张天在北京喝茶。", return_tensors="pt")
    tags = [model.config.id2label[i] for i in model(**tokens).logits.argmax(-1)[0].tolist()]
    assert len(tags) == 10
    if head == "softmax":  # a CRF's scores alone say less than with its transitions
        assert tags[1:6] == ["B-人", "I-人", "O", "B-地", "I-地"]


def test_classes_with_a_split_that_is_kept(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    job = Job(train=class_file, model=tiny_model, epochs=6, learning_rate=5e-3, patience=0, dev_fraction=0.25)
    run = train(job, run_directory=tmp_path / "run")
    assert run.evaluation is not None
    dev = run.evaluation.splits["dev"]
    assert dev.metrics["accuracy"] > 0.9
    assert dev.rows == 24
    check_files(run.directory)
    kept = json.loads((run.directory / "split.json").read_text(encoding="utf-8"))
    assert len(kept["dev"]) == 24
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(run.model_path)
    assert set(model.config.id2label.values()) == {"正面", "负面"}


def test_the_micro_batch_changes_nothing_but_memory(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    """Same job, steps cut differently: the losses agree, as dropout is off."""
    config = Path(tiny_model) / "config.json"
    plain = json.loads(config.read_text())
    folder = tmp_path / "model"
    folder.mkdir()
    for file in Path(tiny_model).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    plain |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(plain))
    losses: list[list[float]] = []
    for cut in (None, 3):
        job = Job(train=class_file, model=str(folder), epochs=1, learning_rate=1e-3)
        run = train(job, fit=Fit(micro_batch=cut), run_directory=tmp_path / f"run-{cut}")
        losses.append([e.data["loss"] for e in run.events() if e.kind == "step"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_wrong_metric_is_refused_before_anything_is_trained(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="accuracy"):
        train(Job(train=class_file, model=tiny_model, metric="f2"), run_directory=tmp_path / "run")
    assert not Run(tmp_path / "run").events()


def test_early_stopping_keeps_the_best(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    job = Job(train=class_file, model=tiny_model, epochs=8, learning_rate=1e-9, head_learning_rate=1e-9, patience=2)
    run = train(job, run_directory=tmp_path / "run")
    assert stopped(run)["reason"] == "early_stop"
    evaluations = [e for e in run.events() if e.kind == "evaluation"]
    assert len(evaluations) == 3
    assert [e.data["best"] for e in evaluations] == [True, False, False]
    assert run.evaluation is not None
    assert run.evaluation.best_step == evaluations[0].step


def test_interrupting_saves_and_says_so(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    import os
    import signal

    # A test run in the background of a shell inherits "ignore".
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(event: Event) -> None:
        if event.kind == "step" and event.step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    job = Job(train=class_file, model=tiny_model, epochs=5)
    try:
        run = train(job, run_directory=tmp_path / "run", listeners=[interrupt])
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped(run) == {"reason": "interrupted", "exit_code": 130}
    # Either the best model so far or a checkpoint to go on from.
    assert run.model_path.exists() or any(run.checkpoints_path.iterdir())
    assert run.events()[-1].step < 10


def test_a_loss_that_is_not_finite_stops_and_names_the_rows(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=r"reviews\.csv:\d+"):
        train(Job(train=class_file, model=tiny_model, epochs=3, learning_rate=1e30), run_directory=tmp_path / "run")
    run = Run.open(tmp_path / "run")
    assert stopped(run)["reason"] == "failed"


def test_multi_label_tunes_thresholds_and_keeps_them(tiny_model: str, tmp_path: Path) -> None:
    rows = [
        json.dumps({"text": f"今天{marks}{'的' * (i % 5)}{'茶' * (i % 3)}", "labels": list(marks)}, ensure_ascii=False)
        for i, marks in enumerate(["", "好", "坏", "好坏"] * 20)
    ]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    job = Job(train=str(path), model=tiny_model, epochs=4, learning_rate=5e-3, task="classification", multi_label=True)
    run = train(job, run_directory=tmp_path / "run")
    assert run.evaluation is not None
    assert run.evaluation.metric == "f1"
    from fitune.tasks import load

    saved = load(run.model_path)
    assert saved.settings.thresholds == pytest.approx(run.evaluation.thresholds)
    assert set(run.evaluation.thresholds) == {"好", "坏"}


def test_a_damaged_model_is_refused_by_name(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    from fitune.tasks import load

    run = train(Job(train=class_file, model=tiny_model, epochs=0.2), run_directory=tmp_path / "run")
    first = load(run.model_path).learner.model.state_dict()
    assert all(torch.isfinite(t).all() for t in first.values() if t.is_floating_point())
    weights = run.model_path / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(bytes(raw))
    with pytest.raises(Refusal, match=r"model\.safetensors"):
        load(run.model_path)
    weights.unlink()
    with pytest.raises(Refusal, match="missing"):
        load(run.model_path)
    with pytest.raises(Refusal):
        load(tmp_path)
