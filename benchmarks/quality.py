"""What the embedded encoder reaches on public Chinese data, all defaults, beside the linear baseline on the same rows.

    python benchmarks/quality.py DATA --work WORK                 # all data sets; hours on two cores
    python benchmarks/quality.py DATA --work WORK --only weibo    # one of them
    python benchmarks/quality.py DATA --work WORK --table         # make benchmarks/quality.md of what is there

DATA holds the folders cluener2020, resume_ner, weibo_ner, waimai_10k, chnsenticorp, thucnews_titles with the files as
their authors publish them. Each data set is one command, ``fitune train ... --model embedded``; its run lies in
WORK/<name>, its figures in WORK/<name>.json. Data sets that come in one piece are divided here, by seed 42.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

SEED = 42


class DataSet(NamedTuple):
    """Files of one data set, the score that counts, and the line to beat with its source."""

    train: str
    dev: str
    test: str | None
    split: str
    metric: str
    bar: float | None
    bar_is: str


SETS = {
    "resume": DataSet(
        "resume_ner/train.char.bmes", "resume_ner/dev.char.bmes", "resume_ner/test.char.bmes",
        "test", "f1", 93.2, "linear CRF",
    ),
    "waimai": DataSet(
        "waimai/train.csv", "waimai/dev.csv", "waimai/test.csv", "test", "accuracy", 90.4, "TF-IDF + SVM",
    ),
    "cluener": DataSet("cluener2020/train.json", "cluener2020/dev.json", None, "dev", "f1", 71.0, "BiLSTM-CRF 70.8"),
    "weibo": DataSet(
        "weibo_ner/weiboNER_2nd_conll.train", "weibo_ner/weiboNER_2nd_conll.dev", "weibo_ner/weiboNER_2nd_conll.test",
        "test", "f1", 50.3, "linear CRF",
    ),
    "chnsenticorp": DataSet(
        "chnsenticorp/train.tsv", "chnsenticorp/dev.tsv", "chnsenticorp/test.tsv",
        "test", "accuracy", None, "",
    ),
    "thucnews": DataSet("thucnews/train.txt", "thucnews/dev.txt", "thucnews/test.txt", "test", "accuracy", None, ""),
}  # fmt: skip


def divide_waimai(data: Path, target: Path) -> None:
    """9,587 / 1,200 / 1,200 rows in a random order (the file is sorted by class).

    The line to beat was measured on a division by seed 42 that is not published. Divisions by the usual generators give
    TF-IDF + SVM between 88.7 and 91.8; on this one it reaches 90.0 to 90.8 by its settings, as the line does.
    """
    with (data / "waimai_10k" / "waimai_10k.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    order = list(range(len(rows)))
    random.Random(SEED).shuffle(order)
    parts = {"train": order[:-2400], "dev": order[-2400:-1200], "test": order[-1200:]}
    target.mkdir(parents=True, exist_ok=True)
    for name, chosen in parts.items():
        with (target / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([head, *(rows[i] for i in chosen)])


def divide_thucnews(data: Path, target: Path) -> None:
    """The published dev file gives 9,000 training and 1,000 development rows; the test file stays."""
    source = data / "thucnews_titles"
    lines = (source / "dev.txt").read_text(encoding="utf-8").splitlines()
    order = np.random.default_rng(SEED).permutation(len(lines))
    target.mkdir(parents=True, exist_ok=True)
    (target / "train.txt").write_text("\n".join(lines[i] for i in order[:9000]) + "\n", encoding="utf-8")
    (target / "dev.txt").write_text("\n".join(lines[i] for i in order[9000:]) + "\n", encoding="utf-8")
    for name in ("test.txt", "class.txt"):
        (target / name).write_bytes((source / name).read_bytes())


def files_of(name: str, data: Path, work: Path) -> list[str]:
    """The arguments that name the files."""
    chosen = SETS[name]
    root = data
    if name == "waimai":
        divide_waimai(data, work / "data" / name)
        root = work / "data"
    if name == "thucnews":
        divide_thucnews(data, work / "data" / name)
        root = work / "data"
    files = [str(root / chosen.train), "--dev", str(root / chosen.dev)]
    return files + (["--test", str(root / chosen.test)] if chosen.test else [])


def run(command: list[str], log: Path) -> float:
    """CPU-seconds of a command and its children; its output goes to ``log``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("w", encoding="utf-8") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(name: str, data: Path, work: Path) -> None:
    """Train and score one data set, and the baseline on the same rows."""
    files = files_of(name, data, work)
    fitune = [sys.executable, "-m", "fitune"]
    target = work / name
    seconds = run([*fitune, "train", *files, "--model", "embedded", "--out", str(target)], work / f"{name}.log")
    line_seconds = run([*fitune, "baseline", *files, "--json"], work / f"{name}.baseline.json")
    save(name, work, seconds, line_seconds)


def save(name: str, work: Path, cpu_seconds: float, baseline_cpu_seconds: float) -> None:
    """Read the run's own evaluation, and keep what the table needs."""
    evaluation = json.loads((work / name / "evaluation.json").read_text(encoding="utf-8"))
    line = json.loads((work / f"{name}.baseline.json").read_text(encoding="utf-8"))
    chosen = SETS[name]
    job = (work / name / "job.toml").read_text(encoding="utf-8")
    plain = {
        "score": 100 * evaluation["splits"][chosen.split]["metrics"][chosen.metric],
        "without_seen": (evaluation["splits"][chosen.split].get("metrics_without_seen") or {}).get(chosen.metric),
        "baseline": 100 * line[chosen.split][chosen.metric],
        "cpu_seconds": cpu_seconds,
        "baseline_cpu_seconds": baseline_cpu_seconds,
        "date": str(datetime.date.today()),
        "versions": evaluation["versions"],
        "epochs": next(part.split("=")[1].strip() for part in job.splitlines() if part.startswith("epochs")),
        "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
    }
    (work / f"{name}.json").write_text(json.dumps(plain, indent=1), encoding="utf-8")


def table(work: Path) -> str:
    """What was measured, as Markdown; what was not is said."""
    head = (
        "| data | split, metric | fitune, embedded | linear baseline, same rows | to beat | "
        "rows not in train | epochs at most | CPU-s | date |"
    )
    lines = ["# Quality", "", head, "|---|---|---|---|---|---|---|---|---|"]
    missing: list[str] = []
    versions: dict[str, str] = {}
    for name, chosen in SETS.items():
        path = work / f"{name}.json"
        if not path.is_file():
            missing.append(name)
            continue
        m = json.loads(path.read_text(encoding="utf-8"))
        versions = m["versions"]
        bar = (
            ""
            if chosen.bar is None
            else f"{chosen.bar} ({chosen.bar_is}): {'yes' if m['score'] > chosen.bar else 'NO'}"
        )
        unseen = "" if m["without_seen"] is None else f"{100 * m['without_seen']:.2f}"
        line = f"{m['baseline']:.2f} ({m['baseline_cpu_seconds']:.0f} CPU-s)"
        lines.append(
            f"| {name} | {chosen.split} {chosen.metric} | **{m['score']:.2f}** | {line} | {bar} | {unseen} | "
            f"{m['epochs']} | {m['cpu_seconds']:.0f} | {m['date']} |"
        )
    lines += [
        "",
        f"One seed ({SEED}), all defaults, one thread. Versions: "
        + ", ".join(f"{k} {v}" for k, v in versions.items())
        + ".",
    ]
    lines += [
        "CPU-s: reading, training, all evaluations, report. Entity scores are strict. Repeat: "
        "`python benchmarks/quality.py DATA --work WORK`."
    ]
    if missing:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", choices=list(SETS))
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("quality.md"))
    a = parser.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    if not a.table:
        for name in [a.only] if a.only else list(SETS):
            measure(name, a.data, a.work)
    a.out.write_text(table(a.work), encoding="utf-8")
    print(a.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
