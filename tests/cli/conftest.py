"""Running the command line in this process."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fitune.cli import main
from fitune.runs import Evaluation, LabelScores, Run, SplitEvaluation, write_report
from fitune.values import Event, Fit, Job


@dataclass
class Result:
    code: int
    out: str
    err: str


Call = Callable[..., Result]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """``command("train", "x.json")``, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        with pytest.raises(SystemExit) as ended:
            main(words)
        captured = capsys.readouterr()
        return Result(int(ended.value.code or 0), captured.out, captured.err)

    return call


def pretend_to_train(
    job: Job,
    *,
    fit: Fit | None = None,
    run_directory: Path,
    report_to: str = "none",
    fresh: bool = False,
    exit_code: int = 0,
    listeners: Iterable[Callable[[Event], None]] = (),
    **_settings: object,
) -> Run:
    """What training leaves behind, without training."""
    run = Run.create(run_directory, job)

    def tell(kind: str, step: int, **data: object) -> None:
        event = Event.model_validate({"kind": kind, "step": step, "time": time.time(), "data": data})
        for listener in (run.append, *listeners):
            listener(event)

    tell("started", 0, steps_total=2, device="cpu", precision="fp32")
    tell("step", 1, loss=0.5, learning_rate=1e-4)
    tell("warning", 1, code="FT501", text="a word of warning")
    tell("step", 2, loss=0.25, learning_rate=1e-5)
    tell("evaluation", 2, split="dev", metrics={"f1": 0.8125, "loss": 0.3}, best=True)
    label = LabelScores(label="A", precision=1, recall=0.5, f1=2 / 3, gold=2, predicted=1, correct=1)
    dev = SplitEvaluation(rows=4, metrics={"f1": 0.8125, "loss": 0.3}, per_label=(label,))
    run.write_evaluation(
        Evaluation(task="ner", labels=("A",), metric="f1", splits={"dev": dev}, baseline={"dev": {"f1": 0.5}})
    )
    tell("stopped", 2, reason="finished", exit_code=exit_code)
    write_report(run)
    return run
