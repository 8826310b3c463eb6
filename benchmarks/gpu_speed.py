"""Useful tokens per second of whole steps on a GPU: padded or packed, fp32 (TF32), fp16, bf16, compiled or not.

    python benchmarks/gpu_speed.py --model bert-base --lengths-of cluener --out gpu_speed.json
    python benchmarks/gpu_speed.py --dry            (a tiny model on the CPU: does the script run?)

Every way takes the same steps (forward, backward, clipping, fused AdamW) in turn, ``--rounds`` times; a ratio is the
median over rounds of the ratio to "padded to --pad" of the same precision's round. Says the card and versions.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import speed_data
import torch

from fitune.data import read
from fitune.hf import CannotPack, EpochOrder, Step, StepData, load_model, load_tokenizer, make_encoder, to_device
from fitune.microbatch import Budget, Stepper
from fitune.tasks import ClassificationTask, Learner, NerTask


class PaddedTo:
    """A step whose every pass is padded to one width, as the usual recipe has it."""

    def __init__(self, step: Step, width: int) -> None:
        self.step, self.width = step, width
        self.lengths, self.total_weight = [width] * len(step.lengths), step.total_weight

    def collate(self, indices: Sequence[int]) -> dict[str, torch.Tensor]:
        batch = self.step.collate(indices)
        room = self.width - batch["input_ids"].shape[1]
        for name in ("input_ids", "attention_mask", "token_type_ids", "labels"):
            if name in batch and batch[name].dim() == 2:
                value = -100 if name == "labels" else 0
                batch[name] = torch.nn.functional.pad(batch[name], (0, room), value=value)
        return batch


def step_of(
    learner: Learner, optimizer: torch.optim.Optimizer, device: torch.device, tokens: int | None
) -> Callable[[Any], None]:
    def loss_sum(inputs: dict[str, Any]) -> torch.Tensor:
        return learner(**to_device(learner.pack(inputs), device))[0]

    stepper = Stepper(loss_sum, learner, budget=Budget(tokens))

    def run(items: Any) -> None:
        stepper.run(items)
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return run


def timed(run: Callable[[Any], None], items: list[Any], device: torch.device) -> tuple[float, float]:
    """Seconds of the first step, in which a compiled model is compiled, and of all steps after it."""
    taken: list[float] = []
    for part in (items[:1], items):
        begin = time.perf_counter()
        for item in part:
            run(item)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(time.perf_counter() - begin)
    return taken[0], taken[1]


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    device = torch.device("cpu" if options.dry else "cuda")
    torch.set_float32_matmul_precision("high")
    kind = "ner" if options.lengths_of == "cluener" else "classification"
    drawn = speed_data.lengths_of(options.lengths_of, options.lengths, options.rows, vocabulary=options.vocabulary)
    lengths = [min(length, options.pad - 2) for length in drawn]
    rows = read(speed_data.write_rows(folder / "rows.jsonl", lengths, kind))
    base = speed_data.write_model(folder / "base", options.model)
    task = NerTask(rows.labels, "softmax", options.pad) if kind == "ner" else ClassificationTask(rows.labels)
    data = StepData(task.encode(rows.examples, make_encoder(load_tokenizer(base))).columns)
    order = list(EpochOrder(data, 0))
    size = options.batch_size
    steps = [data.step(order[i * size : (i + 1) * size]) for i in range(options.steps)]
    useful = sum(step.tokens for step in steps)
    found: dict[str, list[float]] = {}
    firsts: dict[str, list[float]] = {}
    notes: dict[str, str] = {}
    for _round, precision, compiled in itertools.product(
        range(options.rounds), options.precisions, [False, True] if options.compile else [False]
    ):
        for layout in ("padded", "sorted", "packed"):
            way = f"{layout} {precision}{' compiled' if compiled else ''}"
            if layout == "packed" and compiled:
                continue  # lengths change with every pass: each would be compiled anew
            torch.manual_seed(0)
            learner = Learner(load_model(base, task.classes, task=kind).model, precision=precision).to(device).train()
            optimizer = torch.optim.AdamW(learner.parameters(), lr=1e-5, fused=True)
            try:
                if layout == "packed":
                    learner.run_packed()
            except CannotPack as error:
                notes[way] = str(error)
                continue
            if compiled:
                learner.run_compiled()
            items: list[Any] = [PaddedTo(s, options.pad) for s in steps] if layout == "padded" else list(steps)
            run = step_of(learner, optimizer, device, None if layout == "padded" else options.tokens)
            first, seconds = timed(run, items, device)
            found.setdefault(way, []).append(useful / seconds)
            firsts.setdefault(way, []).append(first)
            print(f"  {way}: {found[way][-1]:,.0f} useful tokens / s", flush=True)
    card = "cpu (dry run)" if options.dry else torch.cuda.get_device_name(device)
    facts = {"card": card, "versions": speed_data.versions(), "mean_tokens": float(np.mean(lengths)) + 2}
    return {
        **facts,
        "options": {k: str(v) for k, v in vars(options).items()},
        "tokens_per_second": found,
        "first_step_seconds": firsts,
        "notes": notes,
    }


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(speed_data.MODELS), default="bert-base")
    parser.add_argument("--lengths-of", choices=["cluener", "reviews"], default="cluener")
    parser.add_argument("--lengths", type=Path)
    parser.add_argument("--vocabulary", type=Path, help="BERT vocab.txt in whose tokens the texts are counted")
    parser.add_argument("--pad", type=int, default=128)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=16_384, help="padded tokens a pass of sorted and packed steps")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "fp16", "bf16"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    if options.dry:
        options.model, options.rows, options.steps, options.batch_size = "tiny", 64, 2, 8
        options.rounds, options.precisions, options.compile = 1, ["fp32"], False
    with tempfile.TemporaryDirectory() as name:
        result = measure(options, Path(name))
    print(f"\n{result['card']}; {result['versions']}\n\n| way | useful tokens / s | x padded | first step, s |")
    print("|---|---|---|---|")
    for way, speeds in result["tokens_per_second"].items():
        baseline = result["tokens_per_second"][f"padded {way.split()[1]}"]
        ratio = statistics.median(own / base for own, base in zip(speeds, baseline, strict=True))
        first = statistics.median(result["first_step_seconds"][way])
        print(f"| {way} | {statistics.median(speeds):,.0f} | {ratio:.2f} | {first:.2f} |")
    if options.out:
        options.out.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return result


if __name__ == "__main__":
    main()
