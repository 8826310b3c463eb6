"""Texts per second of prediction: ``pipeline`` in a loop and in batches against fitune's engines, same weights.

    python benchmarks/predict_speed.py --model bert-base --lengths train.json

Every way reads the same texts in turn, ``--rounds`` times; a ratio is the median over rounds of the ratio to the loop
in the same round. CPU-seconds, wall beside them. The exact engines must find the same entities.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import speed_data
import torch

from fitune import Predictor
from fitune.hf import load_model, load_tokenizer
from fitune.predicting.export import export
from fitune.tasks import Learner, NerTask, save, settings_of


def saved_model(folder: Path, name: str) -> Path:
    """A model folder as a run leaves it, with random weights."""
    base = speed_data.write_model(folder / "base", name)
    task = NerTask(("name", "place"), "softmax", 128)
    tokenizer = load_tokenizer(base)
    learner = Learner(load_model(base, task.classes, task="ner").model)
    settings = settings_of(
        task, max_length=128, lowercase=True, normalize_quotes=False, base_model=name, metrics={}, versions={}
    )
    save(folder / "model", learner, tokenizer, settings)
    return folder / "model"


def ways(folder: Path, texts: list[str]) -> dict[str, Callable[[], Any]]:
    """Name -> predict all the texts."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

    model = AutoModelForTokenClassification.from_pretrained(folder)
    pipe: Any = pipeline("ner", model=model, tokenizer=AutoTokenizer.from_pretrained(folder), device="cpu")
    found: dict[str, Callable[[], Any]] = {
        "pipeline, one text a call": lambda: [pipe(text) for text in texts],
        "pipeline, batch_size=32": lambda: pipe(texts, batch_size=32),
    }
    torch_predictor = Predictor(folder, span_scores=False)
    found["fitune, torch"] = lambda: torch_predictor(texts)
    exported = folder.parent / "exported"
    dev = speed_data.write_rows(folder.parent / "dev.jsonl", [20] * 16, "ner")
    for engine in ("onnx", "onnx-int8"):
        try:
            if not exported.exists():
                # Random weights score nothing, so the drop of int8 says nothing here.
                export(folder, exported, int8=True, max_drop=100, dev=str(dev))
            predictor = Predictor(exported, engine=engine, span_scores=False)
        except Exception as error:  # noqa: BLE001 - said in the table: a way that is not installed here
            print(f"left out: {engine}: {error}")
            continue
        found[f"fitune, {engine}"] = lambda predictor=predictor: predictor(texts)
    return found


def timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(speed_data.MODELS), default="4-layer")
    parser.add_argument("--lengths", type=Path)
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    import random

    draw = random.Random(0)
    lengths = speed_data.lengths_of("cluener", options.lengths, options.texts)
    texts = ["".join(draw.choices(speed_data.CHARACTERS, k=min(length, 126))) for length in lengths]
    with tempfile.TemporaryDirectory() as name:
        calls = ways(saved_model(Path(name), options.model), texts)
        seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in calls}
        results: dict[str, Any] = {}
        for _round in range(options.rounds):
            for way, call in calls.items():
                cpu, wall, results[way] = timed(call)
                seconds[way].append((cpu, wall))
                print(f"  {way}: {len(texts) / cpu:.1f} texts / CPU-s", flush=True)
    exact = [way for way in calls if way in ("fitune, torch", "fitune, onnx")]
    same = all([p.spans for p in results[way]] == [p.spans for p in results[exact[0]]] for way in exact)
    print(f"\n{options.model}, {len(texts)} texts, {options.rounds} rounds; {speed_data.versions()}\n")
    print("| way | texts / CPU-s | / wall s | x the loop |\n|---|---|---|---|")
    loop = seconds["pipeline, one text a call"]
    for way, taken in seconds.items():
        ratio = statistics.median(one[0] / own[0] for one, own in zip(loop, taken, strict=True))
        cpu, wall = (statistics.median(values) for values in zip(*taken, strict=True))
        print(f"| {way} | {len(texts) / cpu:.1f} | {len(texts) / wall:.1f} | {ratio:.2f} |")
    print(f"\nThe exact engines find the same entities: {same}")


if __name__ == "__main__":
    main()
