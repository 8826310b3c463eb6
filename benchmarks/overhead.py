"""What fitune adds around the model: reading, aligning and cutting, collating; and its share of an epoch.

    python benchmarks/overhead.py --rows 10000 --model bert-base --lengths train.json

The model's own time is measured on ``--passes`` steps of the same rows and scaled to the epoch.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import speed_data
import torch

from fitune.data import check, read
from fitune.hf import EpochOrder, StepData, keep_memory, load_model, load_tokenizer, make_encoder
from fitune.tasks import Learner, NerTask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(speed_data.MODELS), default="4-layer")
    parser.add_argument("--lengths", type=Path)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--passes", type=int, default=4)
    options = parser.parse_args()
    keep_memory()  # as the command line does; for every way alike
    torch.set_num_threads(1)
    # Threads of the tokenizer would count as CPU-seconds of ours either way; one makes wall and CPU agree.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    clock = time.process_time
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lengths = [min(n, 126) for n in speed_data.lengths_of("cluener", options.lengths, options.rows)]
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
        begin = clock()
        for batch in batches[: options.passes]:
            step = steps.step(batch)
            learner(**step.collate(np.argsort([-n for n in step.lengths]).tolist()))[0].backward()
        model_seconds = (clock() - begin) / options.passes * len(batches)
    characters = sum(lengths)
    around = sum(times.values())
    print(f"{options.model}, {options.rows} rows, {characters} characters; {speed_data.versions()}\n")
    print("| part | CPU-s | characters / CPU-s |\n|---|---|---|")
    for part, seconds in times.items():
        print(f"| {part} | {seconds:.2f} | {characters / seconds:,.0f} |")
    preparing = times["read"] + times["tokenise, align, cut"]
    print(f"\nreading + aligning + windowing: {characters / preparing:,.0f} characters per CPU-second")
    print(
        f"forward and backward of an epoch: {model_seconds:.1f} CPU-s; fitune around it: {around / model_seconds:.1%}"
    )


if __name__ == "__main__":
    main()
