"""Two processes on gloo. The full figures (100 failures, two and four ranks) come from the same script."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "oom_ranks.py"


def run(*arguments):
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_one_rank_out_of_memory_hangs_nobody_and_all_ranks_keep_the_same_weights():
    result = run("--ranks", "2", "--failures", "12")
    assert result["failures"] >= 6
    assert result["hung"] == 0
    assert result["same_weights_on_all_ranks"]


@pytest.mark.slow
def test_a_killed_rank_is_reported():
    assert max(run("--ranks", "2", "--failures", "10", "--kill")["reported_after_seconds"]) < 30
