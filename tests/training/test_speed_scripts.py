"""The speed scripts run: on a tiny model, a few rows, the CPU."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path / "cache"))

    def load(name: str) -> Any:
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load


def test_the_gpu_script_runs_dry(script: Any) -> None:
    result = script("gpu_speed").main(["--dry"])
    assert set(result["tokens_per_second"]) == {"padded fp32", "sorted fp32", "packed fp32"}
    assert all(speed > 0 for speeds in result["tokens_per_second"].values() for speed in speeds)


def test_overhead_runs(script: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["overhead.py", "--model", "tiny", "--rows", "64", "--passes", "1"])
    script("overhead").main()
    assert "characters per CPU-second" in capsys.readouterr().out
