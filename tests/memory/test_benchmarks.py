"""The benchmark scripts: a CI-sized part of the random cases, the dry mode of the GPU script, the row filter."""

import importlib
import random
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> Any:
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load


def test_fits_is_never_wrong_on_random_cases(script: Any) -> None:
    cases = script("memory_cases")
    dice = random.Random(11)
    for _ in range(12):
        case = cases.draw(dice)
        outcome = cases.try_case(case)
        assert outcome.said_fits <= outcome.did_fit, case
        if outcome.did_fit:
            assert outcome.predicted_bytes == outcome.counted_bytes, case


def test_the_gpu_script_predicts_every_configuration_in_its_dry_mode(script: Any, tmp_path: Path) -> None:
    gpu = script("memory_gpu")
    plan = gpu.configurations()
    assert len(plan) >= 60
    assert {c.fraction_gib for c in plan} == {8, 12, 16, 24}
    assert len(set(plan)) == len(plan)
    out = tmp_path / "gpu.md"
    assert gpu.main(["--dry", "--limit", "2", "--tiny", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert text.count("\n| ") == 3
    assert "not measured" in text


def test_rows_without_a_metric_or_versions_are_not_compared(script: Any) -> None:
    memory = script("memory")
    row = {
        "model": "m",
        "task": "t",
        "seq": "128",
        "gpu": "RTX 3090",
        "other": "torch 2",
        "source": "s",
        "what_is_measured(nvidia-smi/max_allocated/max_reserved)": "not stated",
    }
    assert "not stated" in memory.reason_not_comparable(row)
    metric = "what_is_measured(nvidia-smi/max_allocated/max_reserved)"
    assert memory.reason_not_comparable({**row, metric: "memory_allocated"}) is None
    assert memory.reason_not_comparable({**row, metric: "memory_allocated", "seq": ""}) is not None
    assert memory.reason_not_comparable({**row, metric: "nvidia-smi"}) is not None
