"""Choices that a job can make, each through the whole road: pairs, long texts, weights, quotes, a given Fit."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from fitune import Predictor
from fitune.training import train
from fitune.training.preparing import choose_fit
from fitune.values import Fit, Job


def write(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_pairs_of_texts(tiny_model: str, tmp_path: Path) -> None:
    rng = random.Random(2)
    rows: list[dict[str, object]] = []
    for number in range(96):
        first = rng.choice(["北京", "上海"])
        second = first if number % 2 else {"北京": "上海", "上海": "北京"}[first]
        text = f"{first}天气很好{'的' * rng.randrange(4)}"
        rows.append(
            {"text": text, "text_pair": f"{second}{'茶' * rng.randrange(4)}", "label": "yes" if number % 2 else "no"}
        )
    job = Job(train=write(tmp_path / "pairs.jsonl", rows), model=tiny_model, epochs=1, learning_rate=5e-3)
    run = train(job, run_directory=tmp_path / "run")
    assert run.evaluation is not None
    predictor = Predictor(run.directory)
    assert predictor.settings.pairs
    found = predictor("北京天气很好", "上海茶")
    assert set(found.scores or {}) == {"yes", "no"}
    assert found.text_pair == "上海茶"


def test_long_texts_are_split_not_cut(tiny_model: str, tmp_path: Path) -> None:
    """Windows of 32 tokens; the places to find lie behind the first window as often as in it."""
    rng = random.Random(3)
    rows: list[dict[str, object]] = []
    for _number in range(80):
        text, spans = "", []
        for _part in range(4):
            text += "".join(rng.choice("今天气很我他她有和，。") for _c in range(rng.randrange(12, 18)))
            spans.append([len(text), len(text) + 2, "地"])
            text += rng.choice(["北京", "上海", "广州"])
        rows.append({"text": text, "entities": spans})
    file = write(tmp_path / "long.jsonl", rows)
    chosen: dict[str, object] = {"epochs": 4, "learning_rate": 5e-3, "max_length": 32, "patience": 0}
    run = train(Job.model_validate({"train": file, "model": tiny_model, **chosen}), run_directory=tmp_path / "run")
    assert run.evaluation is not None
    dev = run.evaluation.splits["dev"]
    assert dev.coverage == 1.0
    assert dev.metrics["recall"] > 0.9, "entities behind the first window were lost"
    longest = max(rows, key=lambda row: len(str(row["text"])))
    found = Predictor(run.directory)(str(longest["text"]))
    assert {(s.start, s.end) for s in found.spans or ()} >= {(a, b) for a, b, _label in longest["entities"]}  # type: ignore[attr-defined]


def test_class_weights_move_the_decision(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    shares: list[float] = []
    for number, weights in enumerate(({"正面": 50.0, "负面": 1.0}, {"正面": 1.0, "负面": 50.0})):
        job = Job(train=class_file, model=tiny_model, epochs=1, learning_rate=1e-3, class_weights=weights)
        run = train(job, run_directory=tmp_path / f"run-{number}")
        predictions = (run.directory / "dev-predictions.jsonl").read_text(encoding="utf-8").splitlines()
        labels = [json.loads(line)["labels"][0] for line in predictions]
        shares.append(labels.count("正面") / len(labels))
    assert shares[0] > shares[1]


def test_quotes_are_mapped_in_training_and_at_work(tiny_model: str, tmp_path: Path) -> None:
    """A vocabulary that has " and no curly quotes: mapped, nothing is unknown, and the text comes back as it was."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in Path(tiny_model).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    vocabulary[vocabulary.index("茶")] = '"'
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    rows: list[dict[str, object]] = [
        {"text": f"他说“北京{'好' * (n % 5)}”。", "entities": [[3, 5, "地"]]} for n in range(40)
    ]
    job = Job(
        train=write(tmp_path / "q.jsonl", rows), model=str(folder), epochs=1, normalize_quotes=True, dev_fraction=0.3
    )
    run = train(job, run_directory=tmp_path / "run")
    predictor = Predictor(run.directory)
    assert predictor.settings.normalize_quotes
    ids = predictor._encoder.encode(["“”"]).ids.tolist()  # pyright: ignore[reportPrivateUsage]
    assert ids == [vocabulary.index('"')] * 2
    assert predictor("“北京”").text == "“北京”"


@pytest.mark.parametrize(
    ("given", "micro_batch_tokens", "precision"),
    [(None, 512, "fp32"), (Fit(micro_batch=4), None, "fp32"), (Fit(micro_batch_tokens=64), 64, "fp32"),
     (Fit(precision="bf16"), 512, "bf16"), (Fit(checkpoint_every=1), 512, "fp32")],
)  # fmt: skip
def test_what_a_fit_leaves_open_is_chosen_for_the_device(
    given: Fit | None, micro_batch_tokens: int | None, precision: str
) -> None:
    fit, reason = choose_fit(given, torch.device("cpu"))
    assert (fit.micro_batch_tokens, fit.precision) == (micro_batch_tokens, precision)
    assert reason
    if given is not None:
        kept = {name: getattr(given, name) for name in given.model_fields_set}
        assert {name: getattr(fit, name) for name in kept} == kept


@pytest.mark.parametrize(
    ("precision", "seconds", "told"), [("fp16", 0.5, True), ("bf16", 0.1, False), ("fp32", 9, False)]
)
def test_a_precision_that_is_slow_here_is_told(
    precision: str, seconds: float, told: bool, class_file: str, tiny_model: str, tmp_path: Path, monkeypatch: Any
) -> None:
    from fitune.training import precision as room

    monkeypatch.setattr(room, "_layer_seconds", lambda _device, dtype: 0.1 if dtype is None else seconds)
    job = Job(train=class_file, model=tiny_model, epochs=1)
    run = train(job, fit=Fit(precision=precision), run_directory=tmp_path / "run")
    texts = [event.data["text"] for event in run.events() if event.data.get("code") == "FT411"]
    assert len(texts) == told
    assert all("5 times" in text and "--precision fp32" in text for text in texts)


def test_how_slow_a_precision_is_is_measured_and_draws_nothing() -> None:
    from fitune.training.precision import slowness

    before = torch.get_rng_state()
    assert slowness("fp32", torch.device("cpu")) == 1.0
    assert slowness("bf16", torch.device("cpu")) > 0
    assert torch.equal(torch.get_rng_state(), before)


def test_what_a_warning_is_about_names_the_first_row(class_file: str, tiny_model: str, tmp_path: Path) -> None:
    lines = Path(class_file).read_text(encoding="utf-8").splitlines()
    path = tmp_path / "twice.csv"
    path.write_text("\n".join([*lines, lines[1]]) + "\n", encoding="utf-8")
    run = train(Job(train=str(path), model=tiny_model, epochs=1), run_directory=tmp_path / "run")
    texts = [event.data["text"] for event in run.events() if event.data.get("code") == "FT101"]
    assert len(texts) == 1
    assert f"; first: {path}:" in texts[0]
