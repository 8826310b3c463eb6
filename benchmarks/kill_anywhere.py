"""kill -9 at random moments of a training, then the same command again: the weights must equal the undisturbed run's.

    python benchmarks/kill_anywhere.py --kills 200

Half of the kills are drawn over the whole run, half hit a checkpoint while it is written. A run is killed, begun again
with the same call, killed again, and so on until it finishes; the next begins then. Children are forked from a process
that has the libraries loaded, so that a kill hits training and not imports. Prints one line of JSON.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch
import transformers

from fitune.runs import Run
from fitune.training import AlreadyFinished, Saving, train
from fitune.values import Job

CHARACTERS = "天地人你我他好坏大小上下来去吃喝看听说走"
SAVE_EVERY_STEPS = 4


def prepare(folder: Path) -> Job:
    """A tiny BERT and tiny files."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS]
    (folder / "model").mkdir()
    (folder / "model" / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=32,
    )
    transformers.set_seed(0)
    transformers.BertModel(config).save_pretrained(folder / "model")
    transformers.BertTokenizerFast(str(folder / "model" / "vocab.txt")).save_pretrained(folder / "model")
    for name, rows in (("train", 160), ("dev", 30)):
        draw = random.Random(name)
        texts = ["".join(draw.choices(CHARACTERS, k=draw.randrange(3, 20))) for _ in range(rows)]
        lines = [f"{text}\t{'好' if '好' in text else '坏'}" for text in texts]
        (folder / f"{name}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n", encoding="utf-8")
    files = {"train": str(folder / "train.tsv"), "dev": str(folder / "dev.tsv"), "model": str(folder / "model")}
    return Job(**files, batch_size=8, epochs=2, max_length=32, patience=0, learning_rate=1e-3)


def start(job: Job, directory: Path) -> int:
    """Fork a child that trains (or goes on); returns its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            train(job, run_directory=directory, saving=Saving(every_steps=SAVE_EVERY_STEPS))
        code = 0
    except AlreadyFinished:
        # The kill came between the last event and the process's end.
        code = 0
    except Exception:  # noqa: BLE001 - read by the parent
        directory.with_suffix(".txt").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def ended(child: int) -> int | None:
    done, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def weights(directory: Path) -> str:
    return hashlib.sha256((directory / "model" / "model.safetensors").read_bytes()).hexdigest()


def kill_once(job: Job, directory: Path, draw: random.Random, seconds: float, in_save: bool) -> str:
    """One start, and its kill: ``finished``, ``killed`` or ``killed in save``; raises when the run fails by itself."""
    child, checkpoints = start(job, directory), directory / "checkpoints"
    moment = time.monotonic() + draw.random() * seconds
    delay, skip = draw.random() * 0.01, draw.randrange(4)
    seen, inside = set(), False
    while (code := ended(child)) is None:
        if in_save:
            found = {p.name for p in checkpoints.glob(".writing-*")} if checkpoints.is_dir() else set()
            seen |= found
            if found and len(seen) > skip:
                time.sleep(delay)
                inside = True
                break
        elif time.monotonic() > moment:
            break
        time.sleep(0.0005)
    if code is None:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "killed in save" if inside else "killed"
    if code != 0:
        raise RuntimeError(f"the run ended with {code}:\n" + directory.with_suffix(".txt").read_text())
    return "finished"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        folder = Path(name)
        job = prepare(folder)
        begin = time.monotonic()
        child = start(job, folder / "undisturbed")
        os.waitpid(child, 0)
        seconds, expected = time.monotonic() - begin, weights(folder / "undisturbed")
        kills, in_save, lost, same, number = 0, 0, [], [], 0
        while kills < args.kills:
            directory, number = folder / f"run{number}", number + 1
            while True:
                if kills >= args.kills:
                    os.waitpid(start(job, directory), 0)
                    break
                result = kill_once(job, directory, draw, seconds, in_save=kills % 2 == 1)
                if result == "finished":
                    break
                kills, in_save = kills + 1, in_save + (result == "killed in save")
            events = Run(directory).events()
            reached = 0
            for event in events:
                if event.kind == "resumed":
                    lost.append(max(0, reached - event.step))
                if event.kind != "started":  # which is told at step 0 before the run goes on
                    reached = event.step
            same.append(weights(directory) == expected)
            shutil.rmtree(directory)
    result = {
        "kills": kills,
        "during_a_save": in_save,
        "runs": number,
        "bit_identical": sum(same),
        "resumes": len(lost),
        "median_lost_steps": statistics.median(lost) if lost else 0,
        "save_every_steps": SAVE_EVERY_STEPS,
        "undisturbed_seconds": round(seconds, 1),
    }
    print(json.dumps(result))
    return int(not all(same))


if __name__ == "__main__":
    sys.exit(main())
