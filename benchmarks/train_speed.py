"""Useful tokens per second of training: the usual recipes against fitune, side by side in one run.

    python benchmarks/train_speed.py --model bert-base --lengths-of cluener --lengths train.json --vocabulary vocab.txt

(a) every text padded to ``--pad``, (b) stock Trainer with dynamic padding, (c) stock Trainer with length grouping,
(d) fitune. Each runs ``--warm-up`` optimizer steps untimed and ``--steps`` timed ones of ``--batch-size`` rows, in
turn, ``--rounds`` times: a training has hundreds, and in the first few its memory is still growing. A ratio is the
median over rounds of the ratio within a round, so that whatever else the machine does hits all of them. Seconds are
CPU-seconds of the process (wall beside them): on a busy machine wall measures the neighbours. Every measurement has a
process of its own: the stock ways with the C library's memory as a script has it, fitune as ``fitune train`` runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import speed_data
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
)

from fitune.hf import Step, keep_memory, training_arguments
from fitune.training.learning import make_trainer
from fitune.training.preparing import Prepared, prepare
from fitune.values import Fit, Job


@dataclass
class Measured:
    tokens: int
    cpu_seconds: float
    wall_seconds: float

    @property
    def speed(self) -> float:
        return self.tokens / self.cpu_seconds


class Clock(TrainerCallback):
    """Times the steps of a training, the first ``warm_up`` (allocations, lazy state) left out."""

    def __init__(self, warm_up: int) -> None:
        self.warm_up = warm_up
        self.begin: tuple[float, float] | None = None
        self.end = (0.0, 0.0)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.end = time.process_time(), time.perf_counter()
        if state.global_step == self.warm_up:
            self.begin = self.end


def stock(prepared: Prepared, rows: list[dict[str, Any]], grouped: bool, pad: int | None, steps: int) -> Trainer:
    task, tokenizer = prepared.task, prepared.tokenizer
    padding: dict[str, Any] = {"padding": "max_length", "max_length": pad} if pad else {"padding": True}
    collator = (DataCollatorForTokenClassification if task.name == "ner" else DataCollatorWithPadding)(
        tokenizer, **padding
    )
    job = prepared.job
    options: dict[str, Any] = {}
    if grouped:
        import inspect

        from transformers import TrainingArguments

        known = inspect.signature(TrainingArguments.__init__).parameters
        options = (
            {"group_by_length": True} if "group_by_length" in known else {"train_sampling_strategy": "group_by_length"}
        )
    arguments = training_arguments(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=job.batch_size,
        max_steps=steps,
        learning_rate=job.learning_rate,
        report_to="none",
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        **options,
    )
    # As transformers loads it: fitune's own learner has another dropout.
    kind = AutoModelForTokenClassification if task.name == "ner" else AutoModelForSequenceClassification
    model = kind.from_pretrained(prepared.folder, num_labels=len(task.classes))
    return Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator)


def rows_of(prepared: Prepared) -> list[dict[str, Any]]:
    """Tokenised rows as a stock script holds them."""
    columns = prepared.train.columns
    rows: list[dict[str, Any]] = []
    for window in range(len(columns.lengths_W)):
        at = slice(int(columns.starts_W1[window]), int(columns.starts_W1[window + 1]))
        ids = columns.ids_T[at].tolist()
        row: dict[str, Any] = {"input_ids": ids, "attention_mask": [1] * len(ids)}
        if columns.token_labels_T is not None:
            row["labels"] = columns.token_labels_T[at].tolist()
        else:
            assert columns.targets_W is not None
            row["labels"] = int(columns.targets_W[window])
        rows.append(row)
    return rows


def counted(trainer: Trainer, clock: Clock, a_step: float | None = None) -> Iterator[Measured]:
    """Run it; useful tokens are counted from the attention masks of the steps that were timed.

    ``a_step``: useful tokens of an average step instead. Where every row costs the same, counting the few that were
    drawn would measure the luck of the draw.
    """
    seen: list[int] = []
    plain = trainer.training_step

    def step(model: Any, inputs: Any, *rest: Any, **named: Any) -> Any:
        seen.append(inputs.tokens if isinstance(inputs, Step) else int(inputs["attention_mask"].sum()))
        return plain(model, inputs, *rest, **named)

    trainer.training_step = step  # type: ignore[method-assign]
    trainer.add_callback(clock)
    trainer.train()
    assert clock.begin is not None
    timed = seen[clock.warm_up :]
    tokens = round(a_step * len(timed)) if a_step else sum(timed)
    yield Measured(tokens, clock.end[0] - clock.begin[0], clock.end[1] - clock.begin[1])


WAYS = "abcd"


def names_of(pad: int) -> dict[str, str]:
    return {
        "a": f"(a) padded to {pad}",
        "b": "(b) Trainer, dynamic padding",
        "c": "(c) Trainer, grouped by length",
        "d": "(d) fitune",
    }


def measure(way: str, job: Job, pad: int, warm_up: int, steps: int, folder: Path) -> Measured:
    """One way, in this process. All train the same network from the same file."""
    from fitune.runs import Run

    if way != "d":
        plain = prepare(job, Fit(attention="sdpa"))
        rows = rows_of(plain)
        trainer = stock(plain, rows, way == "c", pad if way == "a" else None, warm_up + steps)
        mean = sum(len(row["input_ids"]) for row in rows) / len(rows)
        return next(counted(trainer, Clock(warm_up), job.batch_size * mean if way == "a" else None))
    keep_memory()
    prepared = prepare(job)
    print(f"    fitune: {prepared.pace.facts()}", file=sys.stderr, flush=True)
    run = Run.create(folder / f"run-{time.time_ns()}", prepared.job)
    return next(counted(make_trainer(prepared, run, [], "none", warm_up + steps), Clock(warm_up)))


def in_a_process(way: str, job: Job, folder: Path) -> Measured:
    """The same command again, for one way."""
    path = folder / "job.json"
    path.write_text(job.model_dump_json(), encoding="utf-8")
    command = [sys.executable, *sys.argv, "--only", way, "--job", str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def table(found: dict[str, list[Measured]], name: str, context: float) -> str:
    names = list(found)
    peak = speed_data.gemm_peak_flops()
    per_token = speed_data.flops_per_token(name, context)
    lines = ["| way | useful tokens / CPU-s | / wall s | x (a) | of the GEMM peak |", "|---|---|---|---|---|"]
    for way in names:
        speed = statistics.median(m.speed for m in found[way])
        wall = statistics.median(m.tokens / m.wall_seconds for m in found[way])
        ratio = statistics.median(m.speed / a.speed for m, a in zip(found[way], found[names[0]], strict=True))
        lines.append(f"| {way} | {speed:.0f} | {wall:.0f} | {ratio:.2f} | {speed * per_token / peak:.0%} |")
    ours, pairs = found[names[3]], []
    for other in names[:3]:
        ratio = statistics.median(d.speed / o.speed for d, o in zip(ours, found[other], strict=True))
        pairs.append(f"(d) / {other[:3]}: {ratio:.2f}")
    peak_text = f"GEMM peak {peak / 1e9:.0f} GFLOP per CPU-second."
    return "\n".join([*lines, "", f"Paired: {', '.join(pairs)}. {peak_text}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(speed_data.MODELS), default="4-layer")
    parser.add_argument("--lengths-of", choices=["cluener", "reviews"], default="cluener")
    parser.add_argument("--lengths", type=Path, help="file whose texts give the lengths; else a made-up distribution")
    parser.add_argument("--vocabulary", type=Path, help="BERT vocab.txt in whose tokens the texts are counted")
    parser.add_argument("--pad", type=int, default=128, help="what (a) pads to, and the longest window of all")
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--warm-up", type=int, default=4, help="untimed steps, 1 at least")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", type=Path, help="keep the table under its heading in this file")
    parser.add_argument("--only", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.only:
        job = Job.model_validate_json(options.job.read_text(encoding="utf-8"))
        measured = measure(options.only, job, options.pad, options.warm_up, options.steps, options.job.parent)
        print(json.dumps(asdict(measured)))
        return
    task = "ner" if options.lengths_of == "cluener" else "classification"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.setdefault("FITUNE_CACHE", str(folder / "cache"))
        drawn = speed_data.lengths_of(options.lengths_of, options.lengths, options.rows, vocabulary=options.vocabulary)
        lengths = [min(length, options.pad - 2) for length in drawn]
        job = Job(
            train=str(speed_data.write_rows(folder / "rows.jsonl", lengths, task)),
            model=str(speed_data.write_model(folder / "model", options.model)),
            batch_size=options.batch_size,
            max_length=options.pad,
            head="softmax" if task == "ner" else None,
            epochs=100,  # long enough for the measured choice of passes
        )
        found: dict[str, list[Measured]] = {}
        for round_ in range(options.rounds):
            for way, name in names_of(options.pad).items():
                found.setdefault(name, []).append(in_a_process(way, job, folder))
                print(f"  round {round_ + 1}: {name}: {found[name][-1].speed:.0f} tokens / CPU-s", flush=True)
        tokens = np.array(lengths) + 2
        source = options.lengths.parent.name if options.lengths else "made up"
        heading = (
            f"{options.model}, {options.lengths_of} lengths ({source}), pad {options.pad}, {options.threads} thread(s)"
        )
        about = (
            f"Mean {tokens.mean():.1f} tokens, batch {options.batch_size}, {options.rounds} x {options.steps} steps; "
            f"{speed_data.versions()}."
        )
        text = f"{about}\n\n{table(found, options.model, float((tokens**2).mean() / tokens.mean()))}"
        print(f"\n{heading}\n\n{text}")
        if options.table:
            speed_data.keep_table(options.table, "Training speed", heading, text)


if __name__ == "__main__":
    main()
