"""The verbs that own something of their own; the rooms behind them are tested where they are."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fitune.checkpoint import Lock
from fitune.runs import Run, read_job_toml
from fitune.values import Example, Fit, Job, Prediction, Span
from tests.cli.conftest import Call, pretend_to_train


def stand_in(monkeypatch: pytest.MonkeyPatch, room: str, **names: Any) -> None:
    """Put ``names`` in place of a whole room; of training, what decides about directories stays as it is."""
    if room == "training":
        from fitune.training import Saving, choose_run

        splits = SimpleNamespace(rows=SimpleNamespace(task=None))
        names = {"Saving": Saving, "choose_run": choose_run, "read_splits": lambda _job: splits, **names}
        monkeypatch.setattr("fitune.hf.resolve", lambda _name, _task: None)
    monkeypatch.setitem(sys.modules, f"fitune.{room}", SimpleNamespace(**names))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "训练.json"
    path.write_text('{"text": "甲"}\n')
    return path


def test_train_shows_events_scores_and_places(command: Call, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "training", train=pretend_to_train)
    result = command("train", str(data), "--epochs", "2", "--class-weights", "A=2,B=1")
    assert result.code == 0, result.err
    for line in ("2 steps at most, on cpu fp32", "FT501 a word of warning", "f1 81.25", "50.00", "all epochs done"):
        assert line in result.out
    job = Run.open("runs/训练-1").job
    assert (job.epochs, job.class_weights, job.batch_size) == (2, {"A": 2, "B": 1}, 16)
    assert Path("runs/训练-1/report.html").is_file()
    assert "\x1b" not in result.out


def test_train_gives_the_fit_and_takes_the_runs_exit_code(
    command: Call, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def train(
        job: Job, *, fit: Fit | None, run_directory: Path, report_to: str, fresh: bool, **_settings: object
    ) -> Run:
        seen.append((fit, run_directory, report_to, fresh))
        return pretend_to_train(job, fit=fit, run_directory=run_directory, exit_code=130)

    stand_in(monkeypatch, "training", train=train)
    assert (
        command("train", str(data), "--micro-batch", "4", "--out", "here", "--report-to", "wandb", "--fresh").code
        == 130
    )
    assert seen == [(Fit(micro_batch=4), Path("here"), "wandb", True)]


def test_a_run_that_never_began_leaves_nothing(command: Call, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(job: Job, **_named: object) -> Run:
        raise KeyboardInterrupt

    stand_in(monkeypatch, "training", train=train)
    assert command("train", str(data)).code == 130
    assert list(Path("runs").iterdir()) == []


def test_train_looks_at_data_and_model_before_torch(tmp_path: Path) -> None:
    """Refusals that need no torch come before it is imported, in the foreground too where ``--detach`` was typed."""
    one, good = tmp_path / "one.csv", tmp_path / "good.csv"
    one.write_text("text,label\n" + "".join(f"第{n}个,好\n" for n in range(20)), "utf-8")
    good.write_text("text,label\n" + "".join(f"第{n}个,{'好坏'[n % 2]}\n" for n in range(20)), "utf-8")
    (tmp_path / "same.csv").write_text("text,label\n" + "一样,好\n一样,坏\n" * 9, "utf-8")
    (tmp_path / "bare.csv").write_text("text\n" + "没有标签\n" * 9, "utf-8")
    (tmp_path / "empty-model").mkdir()
    program = (
        "import sys\n"
        "from fitune.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print(int('torch' in sys.modules), file=sys.stderr)\n"
    )
    for words, code in (
        (["one.csv"], "FT130"),
        (["one.csv", "--detach"], "FT130"),
        (["same.csv"], "FT120"),
        (["bare.csv"], "FT131"),
        (["good.csv", "--model", "empty-model"], "FT7"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, "--lang", "en", "train", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith(f"[{code}"), done.stderr
        assert done.stderr.rstrip().endswith("\n0"), "torch was imported"
        assert not list((tmp_path / "runs").glob("*"))


def test_init_then_train_from_the_file(command: Call, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("init", str(data), "--batch-size", "8", "--seed", "7").code == 0
    job = read_job_toml("job.toml")
    assert (job.train, job.batch_size, job.seed) == (str(data), 8, 7)
    assert command("init", str(data)).code == 2
    assert command("init", str(data), "--force").code == 0
    stand_in(monkeypatch, "training", train=pretend_to_train)
    assert command("init", str(data), "--force", "--epochs", "3").code == 0
    assert command("train", "job.toml", "--seed", "9", "--out", "r").code == 0
    assert (Run.open("r").job.epochs, Run.open("r").job.seed) == (3, 9)


def test_a_commands_option_beats_the_file_only_where_it_was_typed(command: Call, data: Path) -> None:
    assert command("init", str(data), "--weight-decay", "0.5", "--lowercase", "-o", "a.toml").code == 0
    assert command("init", "a.toml", "--no-lowercase", "-o", "b.toml").code == 0
    job = read_job_toml("b.toml")
    assert (job.weight_decay, job.lowercase, job.train) == (0.5, False, str(data))


def test_report(command: Call, tmp_path: Path) -> None:
    pretend_to_train(Job(train="a"), run_directory=tmp_path / "r")
    result = command("report", "r", "--lang", "zh")
    assert result.code == 0
    assert "报告" in result.out
    assert 'lang="zh-CN"' in Path("r/report.html").read_text(encoding="utf-8")


def test_predict_prints_json_on_a_pipe(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def predictor(run: str, engine: str | None = None) -> Any:
        assert run == "r"
        return lambda texts: [Prediction(text, spans=(Span(0, 1, "A", 0.5),)) for text in texts]

    stand_in(monkeypatch, "predicting", Predictor=predictor)
    result = command("predict", "r", "张三", "x" * 5000)
    assert result.code == 0, result.err
    first, second = (json.loads(line) for line in result.out.splitlines())
    assert first == {"text": "张三", "entities": [{"start": 0, "end": 1, "label": "A", "score": 0.5, "text": "张"}]}
    assert second["text"] == "x" * 5000
    assert command("predict", "r", "text", "-o", "out").code == 2
    refused = command("predict", "r", "text", "--workers", "2")
    assert refused.code == 2
    assert refused.err.startswith("--workers: ")


@pytest.mark.parametrize(
    "words", [["nwe.csv"], ["folder/new.JSONL"], ["a text", "there.csv"], ["there.csv", "there.csv"]]
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_file_name_is_not_predicted_as_a_text(
    command: Call, monkeypatch: pytest.MonkeyPatch, words: list[str], language: str
) -> None:
    stand_in(monkeypatch, "predicting", Predictor=UpperCase)
    Path("there.csv").write_text("text\n甲\n乙\n", encoding="utf-8")
    result = command("predict", "r", *words, "--lang", language)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(words[-1] + ":")
    assert "fitune predict r " in result.err
    assert bool(re.search("[一-鿿]", result.err)) == (language == "zh")


def test_a_file_name_on_the_pipe_is_a_text(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def predictor(run: str, engine: str | None = None) -> Any:
        return lambda texts: [Prediction(text) for text in texts]

    stand_in(monkeypatch, "predicting", Predictor=predictor)
    monkeypatch.setattr("sys.stdin", io.StringIO("nwe.csv\n"))
    result = command("predict", "r", "-")
    assert json.loads(result.out)["text"] == "nwe.csv"


class UpperCase:
    """A Predictor that finds one entity in each text."""

    def __init__(self, run: str, engine: str | None = None) -> None:
        self.run = run

    def stream(self, examples: Iterable[Example]) -> Iterator[Prediction]:
        return (Prediction(e.text, labels=("B",), scores={"B": 1.0}, source=e.source) for e in examples)


def test_predict_writes_the_format_that_came_in(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "predicting", Predictor=UpperCase)
    Path("in.csv").write_text("text,label\n一,A\n,A\n二,A\n三,B\n", encoding="utf-8")
    result = command("predict", "r", "in.csv", "-o", "out.csv")
    assert result.code == 0, result.err
    assert "in.csv:3: " in result.err
    written = Path("out.csv").read_text(encoding="utf-8")
    assert [line.split(",")[:2] for line in written.splitlines()[1:]] == [["一", "B"], ["二", "B"], ["三", "B"]]


def test_predict_replaces_nothing_unasked(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "predicting", Predictor=UpperCase)
    Path("in.csv").write_text("text,label\n一,A\n二,A\n", encoding="utf-8")
    before = Path("in.csv").read_bytes()
    Path("old.csv").write_text("kept", encoding="utf-8")
    for words in (["./in.csv"], ["in.csv", "--force"], ["old.csv"]):
        assert command("predict", "r", "in.csv", "-o", *words).code == 2
    assert Path("in.csv").read_bytes() == before
    assert Path("old.csv").read_text(encoding="utf-8") == "kept"
    assert command("predict", "r", "in.csv", "-o", "old.csv", "--force").code == 0
    assert "一,B" in Path("old.csv").read_text(encoding="utf-8")


def test_predict_carries_the_other_columns_over(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "predicting", Predictor=UpperCase)
    Path("in.csv").write_text("id,text,label,source\n1,一,A,x\n2,二,A,y\n", encoding="utf-8")
    result = command("predict", "r", "in.csv", "-o", "out.csv")
    assert result.code == 0, result.err
    written = Path("out.csv").read_text(encoding="utf-8").splitlines()
    assert written[0].startswith("id,text,label,source")
    assert [line.split(",")[0] + line.split(",")[3] for line in written[1:]] == ["1x", "2y"]


def test_predict_says_that_there_was_nothing_and_what_is_no_file(
    command: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "predicting", Predictor=UpperCase)
    Path("empty.csv").write_text("text,label\n", encoding="utf-8")
    result = command("predict", "r", "empty.csv")
    assert "no rows to predict" in result.err
    Path("data/deep").mkdir(parents=True)
    result = command("predict", "r", "data/deep")
    assert result.code == 2
    assert "folder" in result.err


def test_a_run_at_work_is_left_alone(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.csv").write_text("text,label\n一,A\n二,B\n", encoding="utf-8")
    Path("busy").mkdir()
    with Lock("busy/lock"):
        for words in ([], ["--detach"], ["--fresh"], ["--detach", "--fresh"], ["--epochs", "3"]):
            result = command("train", "a.csv", "--out", "busy", *words)
            assert result.code == 2, words
            assert "FT603" in result.err
    assert not list(Path().glob("busy.*"))


def test_check_counts_finds_and_repairs(command: Call) -> None:
    rows = "".join(f"文本{n},{'AB'[n % 2]}\n" for n in range(20))
    Path("a.csv").write_text(f"text,label\n{rows}文本0,A\n", encoding="utf-8")
    result = command("check", "a.csv", "--fix", "fixed")
    assert result.code == 0, result.err
    assert "21 rows" in result.out
    assert "FT101" in result.out
    assert "a.csv:22" in result.out
    assert len(Path("fixed/a.csv").read_text(encoding="utf-8").splitlines()) == 21
    assert command("check", "a.csv", "--fix", ".").code == 2
    found = json.loads(command("check", "a.csv", "--json").out)
    assert [f["code"] for f in found["findings"]] == ["FT101"]


def test_baseline(command: Call, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "training", baseline=lambda job, _watch: {"dev": {"f1": 0.5}})
    assert "50.00" in command("baseline", str(data)).out
    assert json.loads(command("baseline", str(data), "--json").out) == {"dev": {"f1": 0.5}}


def test_demo_trains_on_the_files_it_names(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, "training", train=partial(pretend_to_train))
    result = command("demo", "--rows", "60", "--task", "ner")
    assert result.code == 0, result.err
    assert "fitune train demo/news-train.jsonl --dev demo/news-dev.jsonl --model embedded --epochs 3" in result.out
    assert len(Path("demo/news-train.jsonl").read_text(encoding="utf-8").splitlines()) == 60
    assert Run.open("runs/news-train-1").job.model == "embedded"


def test_prediction_for_eyes(capsys: pytest.CaptureFixture[str]) -> None:
    from fitune.cli.render import show_prediction

    show_prediction(Prediction("在[bold]北京", spans=(Span(7, 9, "ns", 0.9),)))
    show_prediction(Prediction("好:smile:", labels=("正面",), scores={"正面": 0.75, "负面": 0.25}))
    show_prediction(Prediction("无", spans=()))
    out = capsys.readouterr().out
    for wanted in ("在[bold]北京\n", "北京  ns  [7, 9)  0.900", "好:smile:\n", "正面 0.750", "no entities"):
        assert wanted in out


def test_json_survives_a_console_without_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    from fitune.cli import render

    written: list[str] = []
    monkeypatch.setattr(render, "sys", SimpleNamespace(stdout=SimpleNamespace(encoding="gbk", write=written.append)))
    render.show_json({"text": "中😀"})
    assert written == ['{"text": "\\u4e2d\\ud83d\\ude00"}\n']


def test_what_is_wrong_is_told_once(command: Call) -> None:
    Path("a.csv").write_text("text,label\n" + "甲乙,A\n丙丁,B\n" * 3 + ",A\n", encoding="utf-8")
    assert command("check", "a.csv").out.count("a.csv:8: the text is empty") == 1


def test_a_repaired_copy_replaces_nothing_unasked(command: Call) -> None:
    Path("a.csv").write_text("text,label\n" + "甲乙,A\n丙丁,B\n" * 3, encoding="utf-8")
    Path("fixed").mkdir()
    Path("fixed/a.csv").write_text("mine")
    refused = command("check", "a.csv", "--fix", "fixed")
    assert refused.code == 2
    assert "--force" in refused.err
    assert Path("fixed/a.csv").read_text() == "mine"
    assert command("check", "a.csv", "--fix", "fixed", "--force").code == 0
    assert Path("fixed/a.csv").read_text(encoding="utf-8").startswith("text,label")


@pytest.mark.parametrize("texts", [[""], ["  "], ["好", ""]])
def test_an_empty_text_is_not_predicted(command: Call, monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> None:
    stand_in(monkeypatch, "predicting", Predictor=UpperCase)
    result = command("predict", "r", *texts)
    assert result.code == 2
    assert f"text {len(texts)}: the text is empty" in result.err
