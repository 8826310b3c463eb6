"""What fitune adds around the model: reading, aligning and cutting, collating; its share of an epoch; the start.

    python benchmarks/overhead.py --rows 10000 --model bert-base --lengths train.json

The model's own time is measured on ``--passes`` steps of the same rows and scaled to the epoch. "Everything else" is
measured as a whole epoch through ``fitune train`` with a model too small to count (its own passes included, so it is
an upper limit): Trainer, collating, events, evaluation, saving, report. ``--start`` measures the time from the command
to the first step, ``--check-megabytes`` what ``fitune check`` takes for made-up files of that size.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import speed_data
import torch

from fitune.data import check, read
from fitune.hf import EpochOrder, StepData, keep_memory, load_model, load_tokenizer, make_encoder, quicken_dropout
from fitune.tasks import Learner, NerTask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(speed_data.MODELS), default="4-layer")
    parser.add_argument("--lengths", type=Path)
    parser.add_argument("--vocabulary", type=Path, help="BERT vocab.txt in whose tokens the texts are counted")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--check-megabytes", type=int, default=0)
    parser.add_argument("--table", type=Path, help="keep the table under its heading in this file")
    options = parser.parse_args()
    keep_memory()  # as the command line does; for every way alike
    torch.set_num_threads(1)
    # Threads of the tokenizer would count as CPU-seconds of ours either way; one makes wall and CPU agree.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    clock = time.process_time
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drawn = speed_data.lengths_of("cluener", options.lengths, options.rows, vocabulary=options.vocabulary)
        lengths = [min(n, 126) for n in drawn]
        file = speed_data.write_rows(folder / "rows.jsonl", lengths, "ner")
        base = speed_data.write_model(folder / "base", options.model)
        encoder = make_encoder(load_tokenizer(base))
        task = NerTask(("name", "place"), "softmax", 128)
        times: dict[str, float] = {}
        begin = clock()
        rows = read(file)
        times["read"] = clock() - begin
        begin = clock()
        check({"train": rows}, encoder, max_length=128)
        times["check"] = clock() - begin
        begin = clock()
        data = task.encode(rows.examples, encoder)
        times["tokenise, align, cut"] = clock() - begin
        steps = StepData(data.columns)
        order = list(EpochOrder(steps, 0))
        batches = [order[i : i + options.batch_size] for i in range(0, len(order), options.batch_size)]
        begin = clock()
        for batch in batches:
            step = steps.step(batch)
            step.collate(range(len(step.lengths)))
        times["collate an epoch"] = clock() - begin
        learner = Learner(load_model(base, task.classes, task="ner").model).train()
        quicken_dropout(learner)
        begin = clock()
        for batch in batches[: options.passes]:
            step = steps.step(batch)
            learner(**step.collate(np.argsort([-n for n in step.lengths]).tolist()))[0].backward()
        model_seconds = (clock() - begin) / options.passes * len(batches)
        else_seconds = child_seconds(train_command(file, tiny_model(folder), folder / "tiny", epochs=1))[0]
        starts = start_seconds(file, base, folder) if options.start else None
        checks = check_files(folder, options.check_megabytes) if options.check_megabytes else []
    characters = sum(lengths)
    around = sum(times.values())
    lines = [f"{options.rows} rows, {characters} characters; {speed_data.versions()}.", ""]
    lines += ["| part | CPU-s | characters / CPU-s |", "|---|---|---|"]
    lines += [f"| {part} | {seconds:.2f} | {characters / seconds:,.0f} |" for part, seconds in times.items()]
    preparing = times["read"] + times["tokenise, align, cut"]
    lines += ["", f"Reading + aligning + windowing: {characters / preparing:,.0f} characters per CPU-second.", ""]
    lines.append(
        f"Forward and backward of an epoch: {model_seconds:.0f} CPU-s ({options.passes} steps, scaled); the parts: "
        f"{around / model_seconds:.2%} of it. A whole epoch through the command line with a tiny model, start, "
        f"evaluations and report included: {else_seconds:.1f} CPU-s, {else_seconds / model_seconds:.1%}."
    )
    if starts is not None:
        lines += [
            "",
            "From the command to the first step, pace measured before: {:.1f} CPU-s, {:.1f} s.".format(*starts),
        ]
    for name, size, cpu, peak in checks:
        lines += [
            "",
            f"`fitune check` of {size / 1e6:.0f} MB ({name}): {cpu:.1f} CPU-s, {peak / 2**20:.0f} MiB at most.",
        ]
    text = "\n".join(lines)
    print(f"{options.model}\n\n{text}")
    if options.table:
        speed_data.keep_table(options.table, "Overhead", options.model, text)


def tiny_model(folder: Path) -> Path:
    return speed_data.write_model(folder / "tiny-base", "tiny")


def train_command(file: Path, model: Path, run: Path, *, epochs: int) -> list[str]:
    """One that trains on all the rows; the development set is a few of them again."""
    dev = speed_data.write_rows(run.parent / "dev.jsonl", [30] * 64, "ner", seed=1)
    words = ["train", str(file), "--dev", str(dev), "--model", str(model), "--head", "softmax", "--max-length", "128"]
    return [sys.executable, "-m", "fitune", *words, "--epochs", str(epochs), "--out", str(run)]


def child_seconds(command: list[str]) -> tuple[float, float, int]:
    """CPU-seconds, wall seconds and most bytes of a command that must succeed."""
    begin = time.perf_counter()
    done = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = done.stderr.read() if done.stderr else b""
    _pid, status, used = os.wait4(done.pid, 0)
    if status:
        raise SystemExit(errors.decode(errors="replace"))
    return used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss * 1024


def start_seconds(file: Path, model: Path, folder: Path) -> tuple[float, float]:
    """CPU-seconds and wall seconds until the run says that it starts; the second start, caches filled by the first."""
    taken = (0.0, 0.0)
    for attempt in range(2):
        run = folder / f"start-{attempt}"
        begin = time.perf_counter()
        # Long enough that the pace is worth measuring; ended as soon as it starts.
        child = subprocess.Popen(
            train_command(file, model, run, epochs=3), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        events = run / "events.jsonl"
        while child.poll() is None and not (events.is_file() and events.stat().st_size):
            time.sleep(0.01)
        ticks = Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[11:13]
        taken = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), time.perf_counter() - begin
        child.kill()
        child.wait()
    return taken


def check_files(folder: Path, megabytes: int) -> list[tuple[str, int, float, int]]:
    """(kind, bytes, CPU-seconds, most bytes) of ``fitune check`` over made-up entities and a made-up table."""
    found: list[tuple[str, int, float, int]] = []
    rows = megabytes * 1_000_000 // 180
    entities = speed_data.write_rows(folder / "entities.jsonl", [37] * rows, "ner")
    table = folder / "classes.csv"
    with table.open("w", encoding="utf-8") as file:
        file.write("label,text\n")
        for row in range(megabytes * 1_000_000 // 606):
            file.write(f"{'good' if row % 2 else 'bad'},{speed_data.made_up_text(200, row)}\n")
    for path in (entities, table):
        cpu, _wall, peak = child_seconds([sys.executable, "-m", "fitune", "check", str(path)])
        found.append((path.name, path.stat().st_size, cpu, peak))
    return found


if __name__ == "__main__":
    main()
