"""In real terminals: start detached, close the terminal, attach from another, stop, go on with the same command."""

import os
import subprocess
import sys
import time

import pexpect
import pytest

from fitune.runs import Run
from tests.training.tiny import write_model, write_rows

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")]


def test_a_run_outlives_its_terminal_and_is_watched_stopped_and_continued(tmp_path):
    write_model(tmp_path / "model")
    write_rows(tmp_path / "train.tsv", 400)
    environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    words = [
        "-m",
        "fitune",
        "train",
        "train.tsv",
        "--model",
        "model",
        "--epochs",
        "4000",
        "--batch-size",
        "8",
        "--patience",
        "0",
        "--max-hours",
        "0.3",
    ]

    def terminal(*arguments):
        return pexpect.spawn(
            sys.executable, ["-m", "fitune", *arguments], cwd=tmp_path, env=environment, timeout=240, encoding="utf-8"
        )

    shell = pexpect.spawn("/bin/sh", cwd=tmp_path, env=environment, timeout=240, encoding="utf-8")
    shell.sendline(f"{sys.executable} {' '.join(words)} --out run --detach")
    shell.expect("At work in the background")
    shell.close(force=True)
    run = Run(tmp_path / "run")
    viewer = terminal("attach", "run")
    viewer.expect("works on it")
    viewer.expect("dev")
    viewer.sendintr()
    viewer.expect(pexpect.EOF)
    listed = terminal("runs", ".")
    listed.expect("at work")
    listed.expect(pexpect.EOF)
    before = run.events()[-1].step
    stopper = terminal("stop", "run")
    stopper.expect("Stopped")
    stopper.expect(pexpect.EOF)
    last = run.events()[-1]
    assert (last.kind, last.data["exit_code"]) == ("stopped", 143)
    assert last.step >= before > 0
    again = subprocess.Popen(
        [sys.executable, *words, "--out", "run"], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL
    )
    end = time.time() + 240
    while not any(e.kind == "resumed" and e.step == last.step for e in run.events()) and time.time() < end:
        time.sleep(0.5)
    assert any(e.kind == "resumed" and e.step == last.step for e in run.events())
    again.terminate()
    assert again.wait(timeout=240) == 143
