"""Every mended script is run: tiny model, tiny data, a child process with a time limit, no network."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fitune.doctor import diagnose_script

from .workplace import entity_rows, make_tiny_model, reviews, with_mentions, write_json_lines, write_table

FOLDER = Path(__file__).parent
MODELS = ("bert-base-chinese", "hfl/chinese-roberta-wwm-ext")
# Metrics come over the network; this one is the package itself.
EVALUATE = """
from seqeval.metrics import f1_score, precision_score, recall_score

class Metric:
    def compute(self, predictions, references):
        given = references, predictions
        return {"overall_f1": f1_score(*given), "overall_precision": precision_score(*given),
                "overall_recall": recall_score(*given), "overall_accuracy": 1.0}

def load(name):
    assert name == "seqeval", name
    return Metric()
"""


def blocks():
    """Name -> script."""
    found = {}
    for block in (FOLDER / "scripts" / "mistakes.txt").read_text(encoding="utf-8").split("=== ")[1:]:
        head, script = block.split("\n", 1)
        found[head.split(" | ")[0]] = script
    return found


def make_place(folder):
    """What the scripts expect around them: their models as local folders, their files."""
    make_tiny_model(folder / MODELS[0])
    make_tiny_model(folder / MODELS[1])
    for name, rows in (("train.json", entity_rows(48)), ("dev.json", entity_rows(16, 163))):
        write_json_lines(folder / name, map(with_mentions, rows))
    rows = reviews(40)
    for name in ("train.csv", "dev.csv", "w.csv"):
        write_table(folder / name, ("text", "label"), rows)
    write_table(folder / "waimai_10k.csv", ("label", "review"), [(label, text) for text, label in rows])
    lines = [f"{label}\t{text}" for text, label in rows]
    (folder / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "evaluate.py").write_text(EVALUATE, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the scripts run in forked children")
def test_every_mended_script_runs(tmp_path):
    for package in ("torch", "transformers", "datasets", "seqeval", "pandas"):
        pytest.importorskip(package)
    make_place(tmp_path / "place")
    paths = []
    for name, script in blocks().items():
        mended = diagnose_script(script, "t.py", folder=tmp_path / "place").mended
        if mended is not None:
            paths.append(tmp_path / f"{name.replace(' ', '_')}.py")
            paths[-1].write_text(mended, encoding="utf-8")
    assert len(paths) >= 30
    paths.append(tmp_path / "unmended.py")
    paths[-1].write_text(blocks()["AdamW"], encoding="utf-8")
    offline = {
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(FOLDER / "script_runner.py"), "120", *map(str, paths)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **offline}, timeout=1500, check=True
    )
    ends = json.loads(done.stdout.strip().split("\n")[-1])
    # The one that must fail shows that failures are seen.
    assert "cannot import name 'AdamW'" in ends.pop("unmended.py")
    assert {name: end for name, end in ends.items() if end} == {}
