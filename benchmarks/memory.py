"""Predicted against published memory: python benchmarks/memory.py measured.csv  (writes benchmarks/memory.md)

``measured.csv``: model, task, batch, seq, precision, optimizer, checkpointing, other, gpu, peak_mb, what is measured,
source. Each row that names its model, shape, precision, optimizer, versions and metric is predicted with the rules of
those versions. Nothing is fitted to the rows; rows that cannot be compared are listed with the reason.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from earlier_bert import BASE, LARGE, EarlierAdamW, EarlierBert, Sizes

from fitune.memory import Semantics, Trace, simulate
from fitune.memory.optimizers import AdamW8bit

MIB = 1 << 20
V100_CONTEXT_MIB = 1343
"""Measured and published with the rows: what an empty context takes on that machine."""
V100 = Semantics(torch_version=(1, 10), compute_capability=(7, 0), padded=False)
K80 = Semantics(torch_version=(1, 2), compute_capability=(3, 7), padded=False)


TEXT = """# Predicted against published memory

Made by `python benchmarks/memory.py measured.csv` (torch {torch}, no GPU). Every row is predicted with the rules of
the versions it was measured with; no constant is fitted to the rows.

**{count} rows compared: median error {median:.2f} %, worst {worst:.2f} %.**
{left_count} rows cannot be compared; they follow with the reason.

MiB. V100 rows: the whole device as NVML shows it, with the published 1,343 MiB of an empty context. K80 rows
(memory_allocated): tensors alive right after the forward.

{compared}

## What older versions change

* torch 1.10 and earlier: softmax kept its input as well as its result for the backward (pytorch/pytorch#65242): one
  more tensor of B*H*L*L per layer, 4 bytes each also under fp16 autocast, because transformers 4.15 adds an fp32 mask.
* torch before 2.0: `zero_grad` kept the gradients; clipping and AdamW looped over the parameters.
* pytorch_transformers 1.0 without apex: GELU and LayerNorm written out op by op keep two more tensors of B*L*I and four
  more of B*L*H per layer.

The fp16 row of 4 x 512 is the one with an open rest: most of what an earlier simulation missed is softmax's fp32 input,
and what is left has no cause that we know.

## Not comparable

{left}
"""


def ids(batch: int, length: int) -> torch.Tensor:
    return torch.empty(batch, length, dtype=torch.long, device="meta")


def trainer_step(model: EarlierBert, row: dict[str, str]) -> Callable[[], None]:
    """One optimizer step of the Trainer of early 2022, with gradient accumulation where the row says so."""
    parameters = list(model.parameters())
    eight_bit = row["optimizer"] == "bnb-adam8bit"
    optimizer: Any = AdamW8bit(parameters, block_values=2048) if eight_bit else EarlierAdamW(parameters)
    half = row["precision"] == "fp16-amp"
    scale = torch.empty((), device="meta")
    passes = 2 if "grad_accum" in row["other"] else 1
    batch, length = int(row["batch"]), int(row["seq"])

    def step() -> None:
        for _ in range(passes):
            inputs, labels = ids(batch, length), torch.empty(batch, dtype=torch.long, device="meta")
            with torch.autocast("cuda", dtype=torch.float16, enabled=half):
                loss = model(inputs, labels)
            if passes > 1:
                loss = loss / 4
            if half:
                loss = loss * scale
            loss.backward()
            del loss, inputs, labels
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=False)
        optimizer.step()
        model.zero_grad(set_to_none=False)

    return step


def predict_v100(row: dict[str, str]) -> tuple[int, Trace]:
    with torch.device("meta"):
        model = EarlierBert(LARGE, 2, checkpointing=row["checkpointing"] == "yes")
    trace = simulate(trainer_step(model, row), resident=[model], steps=3, semantics=V100)
    return V100_CONTEXT_MIB + trace.peak_reserved_bytes // MIB, trace


def predict_weights(row: dict[str, str]) -> tuple[int, Trace]:
    with torch.device("meta"):
        model = EarlierBert(LARGE, 2)
    trace = simulate(lambda: None, resident=[model], steps=1, semantics=V100)
    return V100_CONTEXT_MIB + trace.peak_reserved_bytes // MIB, trace


def predict_forward(row: dict[str, str]) -> tuple[int, Trace]:
    """``memory_allocated`` right after the forward, in evaluation mode, the graph alive."""
    sizes = Sizes(**{**vars(BASE), "written_out": True})
    with torch.device("meta"):
        model = EarlierBert(sizes, None if "pretraining" in row["task"] else 2).eval()
    kept: list[Any] = []
    inputs = ids(int(row["batch"]), int(row["seq"]))
    trace = simulate(lambda: kept.append(model(inputs)), resident=[model, inputs], steps=1, semantics=K80)
    after = trace.replay(timeline=True).timeline[-1][0]
    return after // MIB, trace


def reason_not_comparable(row: dict[str, str]) -> str | None:
    other, metric = row["other"], row["what_is_measured(nvidia-smi/max_allocated/max_reserved)"]
    if "TensorFlow" in other:
        return "TensorFlow: another allocator; a boundary only"
    if row["task"].startswith("cuda-context"):
        return "a CUDA context alone: an input of the prediction, not a result"
    if metric in ("not stated", "boundary") or "vendor" in row["source"]:
        return "metric, head and baseline precision are not stated"
    if not row["seq"] and row["task"] != "load weights only":
        return "sequence length was not recorded"
    if "image" in row["task"]:
        return "an image model; versions and metric are not stated"
    if metric.startswith("nvidia-smi") and "V100" not in row["gpu"]:
        return "nvidia-smi of a card whose empty context is not published"
    return None


def predictor(row: dict[str, str]) -> Callable[[dict[str, str]], tuple[int, Trace]]:
    if row["task"] == "load weights only":
        return predict_weights
    if "V100" in row["gpu"]:
        return predict_v100
    return predict_forward


def compare(rows: list[dict[str, str]]) -> tuple[list[list[str]], list[list[str]], list[float]]:
    compared, left, errors = list[list[str]](), list[list[str]](), list[float]()
    for row in rows:
        reason = reason_not_comparable(row)
        name = f"{row['model']}, {row['task']}"
        shape = f"{row['batch'] or '?'} x {row['seq'] or '?'}"
        if reason is not None:
            left.append([name, shape, row["precision"], row["gpu"], row["peak_mb"], reason])
            continue
        start = time.process_time()
        predicted, _ = predictor(row)(row)
        seconds = time.process_time() - start
        if row["peak_mb"] == "OOM":
            verdict = "out of memory, as measured" if predicted * MIB > 11.17 * 1024 * MIB * 0.98 else "WRONG: fits"
            measured, error = "out of memory at 11.17 GiB", verdict
        else:
            difference = 100 * (predicted / int(row["peak_mb"]) - 1)
            errors.append(difference)
            measured, error = f"{int(row['peak_mb']):,}", f"{difference:+.2f} %"
        compared.append(
            [
                *(name, shape, row["precision"], row["optimizer"], row["checkpointing"]),
                *(measured, f"{predicted:,}", error, f"{seconds:.1f}"),
            ]
        )
        print(*compared[-1], sep=" | ", flush=True)
    return compared, left, errors


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measured", type=Path, help="the published rows, as CSV")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("memory.md"))
    options = parser.parse_args()
    with options.measured.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    compared, left, errors = compare(rows)
    sizes = [abs(error) for error in errors]
    heads = [
        "model, task",
        "batch",
        "precision",
        "optimizer",
        "checkpointing",
        "measured",
        "predicted",
        "error",
        "CPU s",
    ]
    text = TEXT.format(
        torch=torch.__version__,
        count=len(sizes),
        median=statistics.median(sizes),
        worst=max(sizes),
        left_count=len(left),
        compared=table(heads, compared),
        left=table(["model, task", "batch", "precision", "card", "published", "reason"], left),
    )
    options.out.write_text(text, encoding="utf-8")
    print(f"median {statistics.median(sizes):.2f} %, worst {max(sizes):.2f} %, {len(sizes)} rows")


if __name__ == "__main__":
    main()
