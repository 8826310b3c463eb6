"""Out-of-memory on one of several ranks: nobody hangs, all ranks end with the same weights.

    python benchmarks/oom_ranks.py --ranks 2 --failures 100
    python benchmarks/oom_ranks.py --ranks 2 --kill          # one rank is killed: how soon do the others report it

Ranks are processes on this machine, connected by gloo, the model in DistributedDataParallel. In every step one rank,
drawn at random, runs out of memory at an allocation drawn at random. The weights are compared over the ranks, and with
one process that trains on all ranks' windows without any failure (equal up to rounding: the sums have another order).
"""

import argparse
import hashlib
import json
import os
import random
import signal
import socket
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from fitune.microbatch import Budget, RankLost, Stepper


class FailAt(TorchDispatchMode):
    """Runs out of memory at allocation number ``k`` (counted from 0; -1: never)."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k, self.seen, self.failed = k, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # An exchange between ranks has begun or not; half of one cannot be played.
        allocates = any(r.alias_info is None and "Tensor" in str(r.type) for r in func._schema.returns)
        if allocates and func.namespace != "c10d":
            self.seen += 1
            if self.seen - 1 == self.k:
                self.failed += 1
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        return func(*args, **(kwargs or {}))


class Windows:
    """The windows of one rank in one step."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.lengths = torch.randint(2, 24, (6,), generator=generator).tolist()
        self.ids = [torch.randint(0, 40, (n,), generator=generator) for n in self.lengths]

    @property
    def total_weight(self) -> float:
        return float(sum(self.lengths))

    def collate(self, indices):
        ids = nn.utils.rnn.pad_sequence([self.ids[i] for i in indices], batch_first=True)
        lengths = torch.tensor([self.lengths[i] for i in indices])
        return ids, torch.arange(ids.shape[1])[None] < lengths[:, None]


class Both(Windows):
    """The windows of all ranks in one step."""

    def __init__(self, parts: list[Windows]) -> None:
        self.lengths = [n for part in parts for n in part.lengths]
        self.ids = [ids for part in parts for ids in part.ids]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(40, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, ids):
        return self.head(torch.tanh(self.mix(self.embed(ids))))


def loss_sum_of(model):
    def loss_sum(inputs):
        ids, mask = inputs
        return nn.functional.cross_entropy(model(ids)[mask], (ids % 4)[mask], reduction="sum")

    return loss_sum


def train(model, items_of, steps: int, failing=lambda step: -1) -> dict:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    stepper = Stepper(loss_sum_of(model), model, budget=Budget(100))
    stepper.prepare_optimizer(optimizer)
    failures = retries = 0
    for step in range(steps):
        items = items_of(step)
        with FailAt(failing(step)) as card:
            retries += stepper.run(items).retries
        failures += card.failed
        stepper.clip(1.0)
        stepper.apply(optimizer)
        optimizer.zero_grad()
    return {"failures": failures, "retries": retries, "budget": stepper.budget.tokens}


def weights(model) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def rank_main(rank: int, args, port: int, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=args.ranks, timeout=timedelta(seconds=300))
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Model())

    def failing(step: int) -> int:
        draw = random.Random(f"{args.seed}/{step}")
        unlucky, k = draw.randrange(args.ranks), draw.randrange(30)
        if args.kill and step == 3 and rank == args.ranks - 1:
            (Path(folder) / "killed").write_text(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        return k if rank == unlucky and not args.kill else -1

    out = Path(folder) / f"{rank}.json"
    try:
        report = train(model, lambda step: Windows(1000 * step + rank), args.failures, failing)
    except RankLost as error:
        out.write_text(json.dumps({"lost": str(error), "time": time.time()}))
        sys.stdout.flush()
        os._exit(3)
    report["weights"] = hashlib.sha256(weights(model).numpy().tobytes()).hexdigest()
    out.write_text(json.dumps(report))
    if rank == 0:
        torch.save(weights(model), Path(folder) / "weights.pt")
    dist.destroy_process_group()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--failures", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill", action="store_true")
    args = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=rank_main, args=(r, args, port, folder)) for r in range(args.ranks)]
        for process in processes:
            process.start()
        end = time.time() + 300 + 10 * args.failures
        for process in processes:
            process.join(max(0.0, end - time.time()))
        hung = [process for process in processes if process.is_alive()]
        for process in hung:
            process.kill()
        reports = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
        if args.kill:
            killed = float((Path(folder) / "killed").read_text())
            waits = [report["time"] - killed for report in reports]
            print(json.dumps({"ranks": args.ranks, "hung": len(hung), "reported_after_seconds": waits}))
            return int(bool(hung) or len(waits) != args.ranks - 1 or max(waits) > 30)
        if hung or len(reports) != args.ranks or any("lost" in report for report in reports):
            print(json.dumps({"ranks": args.ranks, "hung": len(hung), "reports": reports}))
            return 1
        torch.manual_seed(0)
        alone = Model()
        train(alone, lambda step: Both([Windows(1000 * step + r) for r in range(args.ranks)]), args.failures)
        difference = (weights(alone) - torch.load(Path(folder) / "weights.pt")).abs().max().item()
        result = {
            "ranks": args.ranks,
            "steps": args.failures,
            "failures": sum(report["failures"] for report in reports),
            "hung": len(hung),
            "same_weights_on_all_ranks": len({(report["weights"], report["budget"]) for report in reports}) == 1,
            "largest_difference_to_one_process": difference,
        }
        print(json.dumps(result))
        good = result["same_weights_on_all_ranks"] and len(reports) == args.ranks and difference < 1e-3
        return int(bool(hung) or not good)


if __name__ == "__main__":
    sys.exit(main())
