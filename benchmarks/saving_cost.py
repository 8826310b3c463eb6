"""What saving its state costs a training: CPU time of all saves (copy, hash, write) over that of the whole process.

    python benchmarks/saving_cost.py --seconds 300 --model bert-base --folder /tmp

A real ``train`` with the default settings on rows and a model with random weights, ended after ``--seconds``. Counted
are the training thread while it copies and the thread that hashes and writes; waiting for the disk is told as well.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import speed_data
import torch

from fitune.checkpoint import Store
from fitune.training import Saving, train
from fitune.training.saving import Keeper
from fitune.values import Job

spent: dict[str, list[float]] = {"copy": [], "write": [], "wall": []}


def timed(kind: type, name: str, part: str) -> None:
    """Add up the CPU time of this thread, and for writes the wall time, in each call of a method."""
    method = getattr(kind, name)

    def call(*arguments: Any, **named: Any) -> Any:
        cpu, wall = time.thread_time(), time.monotonic()
        try:
            return method(*arguments, **named)
        finally:
            spent[part].append(time.thread_time() - cpu)
            if part == "write":
                spent["wall"].append(time.monotonic() - wall)

    setattr(kind, name, call)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--model", choices=sorted(speed_data.MODELS), default="bert-base")
    parser.add_argument("--folder", type=Path, help="on the disk that is measured")
    options = parser.parse_args()
    torch.set_num_threads(1)
    timed(Keeper, "save", "copy")
    timed(Store, "save", "write")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        lengths = [min(n, 126) for n in speed_data.lengths_of("cluener", None, 4000)]
        file = speed_data.write_rows(folder / "rows.jsonl", lengths, "ner")
        dev = speed_data.write_rows(folder / "dev.jsonl", lengths[:20], "ner")
        base = speed_data.write_model(folder / "base", options.model)
        job = Job(train=str(file), dev=str(dev), model=str(base), batch_size=8, epochs=50, max_length=128, patience=0)
        begin, cpu = time.monotonic(), time.process_time()
        run = train(job, run_directory=folder / "run", saving=Saving(most_seconds=options.seconds))
        total, wall = time.process_time() - cpu, time.monotonic() - begin
        saves = [event for event in run.events() if event.kind == "checkpoint"]
        # The last save is the one that ends the run; it was asked for and did not come by the clock.
        by_clock = slice(0, -1)
        share = (sum(spent["copy"][by_clock]) + sum(spent["write"][by_clock])) / total
        result = {
            "model": options.model,
            "versions": speed_data.versions(),
            "state_bytes": saves[-1].data["bytes"],
            "wall_seconds": round(wall),
            "cpu_seconds": round(total),
            "saves_by_the_clock": len(saves) - 1,
            "copy_cpu_seconds": [round(s, 2) for s in spent["copy"]],
            "write_cpu_seconds": [round(s, 2) for s in spent["write"]],
            "write_wall_seconds": [round(s, 2) for s in spent["wall"]],
            "share_percent": round(100 * share, 2),
            "most_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
