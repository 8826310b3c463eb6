"""Texts per second of prediction: ``pipeline`` in a loop and in batches against fitune's engines, same weights.

    python benchmarks/predict_speed.py --model bert-base --lengths dev.json --vocabulary vocab.txt
    python benchmarks/predict_speed.py --trained runs/train-1 --dev dev.json

Every way reads the same texts in turn, ``--rounds`` times; a ratio is the median over rounds of the ratio to the loop
in the same round, of CPU-seconds and of wall time. Latency: wall time of one text a call, the same texts for every way
in turn, with a pause before each so that no other engine's idle threads still spin. The entities of every exact engine
are compared with the pipeline's (its best class of each token; a trained CRF is left out for that, and is a row of its
own). Every way has a process of its own: the pipeline with the C library's memory as
a script has it, fitune's engines as ``fitune predict`` runs them (several engines in one process slow each other down:
each brings its own threads). ``--table FILE`` keeps the table under its heading.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import speed_data
import torch

from fitune import Predictor
from fitune.hf import keep_memory, load_model, load_tokenizer
from fitune.predicting.export import Comparison, export
from fitune.tasks import Learner, NerTask, read_settings, rewrite_settings, save, settings_of
from fitune.values import Prediction

LOOP, BATCH = "pipeline, one text a call", "pipeline, batch_size=32"
IDLE_SECONDS = 0.5
"""OpenMP's threads spin for 0.2 s after their work unless told otherwise (KMP_BLOCKTIME)."""


def random_model(folder: Path, name: str) -> Path:
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


def read_best_classes(folder: Path) -> None:
    """From now on a model or an export reads the best class of each token, as the pipeline does."""
    settings = read_settings(folder)
    rewrite_settings(folder, settings.model_copy(update={"head": "softmax"}))


def exports(folder: Path, dev: Path) -> list[Comparison]:
    """Every engine that can be had here, beside ``folder``."""
    found: list[Comparison] = []
    for to in ("onnx", "ctranslate2"):
        try:
            found += export(folder, to=to, int8=True, max_drop=100, dev=str(dev))[1]
        except Exception as error:  # noqa: BLE001 - said in the table: an engine that is not installed here
            print(f"left out: {to}: {error}", flush=True)
    return found


def entities(tokens: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    """Of a pipeline's labelled tokens, read as conlleval does."""
    found: list[list[Any]] = []
    before = -2
    for token in tokens:
        mark, _, label = token["entity"].partition("-")
        if mark == "B" or token["index"] != before + 1 or found[-1][2] != label:
            found.append([token["start"], token["end"], label])
        found[-1][1] = token["end"]
        before = token["index"]
    return [(start, end, label) for start, end, label in found]


def timed(call: Callable[[], Any]) -> tuple[float, float, Any]:
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    return time.process_time() - cpu, time.perf_counter() - wall, result


class Served:
    """One way of predicting, in a process of its own; called with texts, one by one or all together."""

    def __init__(self, way: str, folder: Path, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._end, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(way, str(folder), threads, other), daemon=True)
        self._process.start()
        assert self._end.recv() == "ready"

    def timed(self, texts: list[str], *, one_by_one: bool = False) -> tuple[float, float, Any]:
        """CPU-seconds, wall seconds and the entities of each text."""
        self._end.send((texts, one_by_one))
        return self._end.recv()

    def close(self) -> None:
        self._process.kill()


def _serve(way: str, folder: str, threads: int, end: Any) -> None:
    torch.set_num_threads(threads)
    predict = _pipeline(folder) if way in (LOOP, BATCH) else _engine(way, folder)
    predict(["热身"])
    end.send("ready")
    while True:
        texts, one_by_one = end.recv()
        if one_by_one:
            cpu, wall, found = timed(lambda texts=texts: [predict([text])[0] for text in texts])
        else:
            cpu, wall, found = timed(lambda texts=texts: predict(texts))
        end.send((cpu, wall, [entities(one) if way in (LOOP, BATCH) else spans(one) for one in found]))


def _pipeline(folder: str) -> Callable[[list[str]], list[Any]]:
    """As a script has it. A list of one text is a call for one text."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

    network = AutoModelForTokenClassification.from_pretrained(folder)
    pipe: Any = pipeline("ner", model=network, tokenizer=AutoTokenizer.from_pretrained(folder), device="cpu")
    return lambda texts: [pipe(texts[0])] if len(texts) == 1 else pipe(texts, batch_size=32)


def _engine(way: str, folder: str) -> Callable[[list[str]], list[Any]]:
    """As ``fitune predict`` has it."""
    keep_memory()
    return Predictor(folder, engine=way.split(", ")[1], span_scores=False)


def spans(prediction: Prediction) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label) for span in prediction.spans or ()]


def made_up(options: argparse.Namespace) -> tuple[Path, list[str], Path]:
    draw = random.Random(0)
    lengths = speed_data.lengths_of("cluener", options.lengths, options.texts, vocabulary=options.vocabulary)
    texts = ["".join(draw.choices(speed_data.CHARACTERS, k=min(length, 126))) for length in lengths]
    folder = options.folder
    return random_model(folder, options.model), texts, speed_data.write_rows(folder / "dev.jsonl", [20] * 16, "ner")


def trained(options: argparse.Namespace) -> tuple[Path, list[str], Path]:
    rows = [line for line in options.dev.read_text(encoding="utf-8").splitlines() if line.strip()]
    dev = options.folder / "dev.jsonl"
    dev.write_text("\n".join(rows[: options.scored]) + "\n", encoding="utf-8")
    shutil.copytree(options.trained / "model", options.folder / "model")
    return options.folder / "model", [json.loads(row)["text"] for row in rows[: options.texts]], dev


def measure(options: argparse.Namespace) -> str:
    folder, texts, dev = trained(options) if options.trained else made_up(options)
    compared = {comparison.engine: comparison for comparison in exports(folder, dev)}
    for model in (folder, *(folder.parent / to for to in ("onnx", "ctranslate2"))):
        if (model / "fitune.json").is_file():
            read_best_classes(model)
    folders = {LOOP: folder, BATCH: folder, **{f"fitune, {engine}": folder for engine in ("torch", *compared)}}
    if options.trained and read_settings(options.trained / "model").head == "crf":
        folders["fitune, torch, its CRF"] = options.trained / "model"
    served = {way: Served(way, model, options.threads) for way, model in folders.items()}
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in served}
    found: dict[str, Any] = {}
    for _round in range(options.rounds):
        for way, process in served.items():
            cpu, wall, found[way] = process.timed(texts, one_by_one=way == LOOP)
            seconds[way].append((cpu, wall))
            print(f"  {way}: {len(texts) / cpu:.1f} texts / CPU-s", flush=True)
    one: dict[str, list[float]] = {way: [] for way in served if way != BATCH}
    for text in texts[: options.singles]:
        for way, taken in one.items():
            time.sleep(IDLE_SECONDS)
            taken.append(served[way].timed([text])[1])
    for process in served.values():
        process.close()
    about = f"{len(texts)} texts, {sum(map(len, texts))} characters, {options.rounds} rounds; {speed_data.versions()}."
    scores = compared if options.trained else {}
    return "\n".join([about, "", *table(len(texts), seconds, one, found, scores)])


def table(
    texts: int,
    seconds: dict[str, list[tuple[float, float]]],
    one: dict[str, list[float]],
    found: dict[str, Any],
    compared: dict[str, Comparison],
) -> list[str]:
    lines = ["| way | texts / CPU-s | x the loop | / wall s | x | one text, wall ms | x | entities | score |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for way, taken in seconds.items():
        by_cpu, by_wall = (
            statistics.median(loop[kind] / own[kind] for loop, own in zip(seconds[LOOP], taken, strict=True))
            for kind in (0, 1)
        )
        cpu, wall = (statistics.median(values) for values in zip(*taken, strict=True))
        latency = share = same = score = ""
        if way in one:
            latency = f"{1000 * statistics.median(one[way]):.0f}"
            share = f"{statistics.median(a / b for a, b in zip(one[way], one[LOOP], strict=True)):.2f}"
        if way.startswith("fitune") and "CRF" not in way:
            other = sum(a != b for a, b in zip(found[way], found[LOOP], strict=True))
            same = "the same" if not other else f"{other} texts differ"
        if comparison := compared.get(way.removeprefix("fitune, ")):
            score = f"{100 * comparison.exported_score:.2f} ({-comparison.drop_points:+.2f}, {comparison.rows} rows)"
        lines.append(
            f"| {way} | {texts / cpu:.1f} | {by_cpu:.2f} | {texts / wall:.1f} | {by_wall:.2f} | {latency} "
            f"| {share} | {same} | {score} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(speed_data.MODELS), default="4-layer", help="with random weights")
    parser.add_argument("--lengths", type=Path)
    parser.add_argument("--vocabulary", type=Path, help="BERT vocab.txt in whose tokens the texts are counted")
    parser.add_argument("--trained", type=Path, metavar="RUN", help="a run instead; with --dev")
    parser.add_argument("--dev", type=Path, help="JSON lines with text and gold: texts to predict, rows to score on")
    parser.add_argument("--scored", type=int, default=None, help="rows of --dev that engines are scored on; all")
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--singles", type=int, default=16, help="texts whose latency is measured")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    keep_memory()  # as the command line does
    torch.set_num_threads(options.threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    name = f"trained run {options.trained.name}" if options.trained else f"{options.model}, random weights"
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        text = measure(options)
    print(f"\n{name}\n\n{text}")
    if options.table:
        speed_data.keep_table(options.table, "Prediction speed", name, text)


if __name__ == "__main__":
    main()
