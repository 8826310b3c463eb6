"""The live view is made from events alone."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

from fitune.cli import progress
from fitune.cli.progress import PLAIN_SECONDS, View, counted, reason_text, shown_live
from fitune.data import stream
from fitune.values import Event, Prediction


def event(kind: str, step: int = 0, **data: object) -> Event:
    return Event.model_validate({"kind": kind, "step": step, "time": 0.0, "data": data})


def test_plain_lines_come_at_most_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    view = View(None, "f1", clock=lambda: now[0])
    view.see(event("started", steps_total=100))
    for step in range(1, 101):
        now[0] += 1
        view.see(event("step", step, loss=1 / step, learning_rate=1e-4))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Training: 100 steps")
    assert lines[1] == "step 1/100  loss 1.0000  rate 1.0e-04"
    assert len(lines) == 2 + 99 // int(PLAIN_SECONDS)


def test_the_best_score_stays_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Progress(TextColumn("{task.fields[figures]}"), console=Console(file=None), disable=True)
    view = View(bar, None)
    view.see(event("started", steps_total=9))
    for step, score, best in ((1, 0.25, True), (2, 0.75, True), (3, 0.5, False)):
        view.see(event("evaluation", step, split="dev", metrics={"loss": 0.1, "f1": score}, best=best))
    view.see(event("step", 4, loss=0.5))
    assert bar.tasks[0].fields["figures"] == "loss 0.5000  best f1 75.00"
    assert bar.tasks[0].completed == 4
    out = capsys.readouterr().out
    assert "dev (step 2): loss 0.1000  f1 75.00  *\n" in out
    assert "f1 50.00\n" in out


def test_other_events_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    view = View(None, None)
    view.see(event("started", steps_total=9, pace={"compile_note": "torch.compile is not kept"}))
    view.see(event("micro_batch", 7, from_tokens=4096, to_tokens=2048, reason="out of memory"))
    view.see(event("resumed", 8))
    view.see(event("stopped", 9, reason="early_stop"))
    out = capsys.readouterr().out
    assert "torch.compile is not kept\n" in out
    assert "step 7: micro-batch 4096 -> 2048 tokens (out of memory)" in out
    assert "going on from step 8" in out
    assert "stopped at step 9: no more improvement" in out
    assert reason_text("a reason of tomorrow") == "a reason of tomorrow"


def test_live_shows_what_is_heard(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_live() as hear:
        hear(event("stopped", 2, reason="finished"))
    assert capsys.readouterr().out == "stopped at step 2: all epochs done\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_over_predictions_goes_to_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"text": "{n}"}}\n' for n in range(40)), encoding="utf-8")
    shown = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=shown, force_terminal=terminal, width=80))
    monkeypatch.setattr(progress, "SHOWN_SECONDS", 0)
    rows = stream(path)
    predictions = (Prediction(row.text, source=row.source) for row in rows)
    found = list(counted(predictions, rows, own_line=True))
    assert [p.text for p in found] == [str(n) for n in range(40)]
    assert bool(shown.getvalue()) == terminal
    if terminal:
        # The file's last line is empty.
        assert "98%" in shown.getvalue()
        assert "40 rows" in shown.getvalue()
