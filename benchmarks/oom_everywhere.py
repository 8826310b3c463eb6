"""Out-of-memory at every single allocation of a small BERT's training: three steps, evaluation, saving.

    python benchmarks/oom_everywhere.py                # every allocation
    python benchmarks/oom_everywhere.py --every 10     # every tenth

Each time one allocation fails, once, in forward, backward, clipping, optimizer.step, evaluation or the copy that is
saved. The run must complete, its weights must be bit-equal to those of a run that was planned with the splits that it
ended with, and no byte may stay allocated. The injector sits below autograd, as the allocator does.
"""

import argparse
import gc
import json
import random
import sys
import time

import torch
import transformers
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from fitune.microbatch import Budget, Stepper, Sweep, retried

CLASSES = 5
STEPS = ((9, 3, 12, 12, 5), (4, 4, 11), (7, 7, 7, 7))


class Injector(TorchDispatchMode):
    """Fails allocation number ``k`` once; counts allocations and the bytes that live tensors hold."""

    def __init__(self, k: int = -1) -> None:
        super().__init__()
        self.k, self.seen, self.failed, self.phase, self.phases = k, 0, 0, "", {}
        self.storages = {}

    def live_bytes(self) -> int:
        return sum(size for reference, size in self.storages.values() if not reference.expired())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not any(r.alias_info is None and "Tensor" in str(r.type) for r in func._schema.returns):
            return func(*args, **(kwargs or {}))
        self.seen += 1
        self.phases[self.phase] = self.phases.get(self.phase, 0) + 1
        if self.seen - 1 == self.k:
            self.failed += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        out = func(*args, **(kwargs or {}))
        for leaf in tree_flatten(out)[0]:
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                self.storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        return out


class Items:
    def __init__(self, lengths, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.lengths = list(lengths)
        self.ids = [torch.randint(5, 60, (n,), generator=generator) for n in lengths]

    @property
    def total_weight(self) -> float:
        return float(sum(self.lengths))

    def collate(self, indices):
        ids = torch.nn.utils.rnn.pad_sequence([self.ids[i] for i in indices], batch_first=True)
        mask = torch.arange(ids.shape[1])[None] < torch.tensor([self.lengths[i] for i in indices])[:, None]
        return {"input_ids": ids, "attention_mask": mask.long()}, mask, ids % CLASSES


def new_model():
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        num_labels=CLASSES,
    )
    return transformers.BertForTokenClassification(config)


def train(injector: Injector, start, budgets=None):
    """Returns budgets used and saved weights. ``budgets``: one a step; None: 48 tokens, smaller as memory runs out."""
    model = new_model()
    model.load_state_dict(start)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    torch.manual_seed(1)

    def loss_sum(inputs):
        batch, mask, targets = inputs
        return torch.nn.functional.cross_entropy(model(**batch).logits[mask], targets[mask], reduction="sum")

    stepper, used = Stepper(loss_sum, model, budget=Budget(48)), []
    # Windows lie in the host's memory, outside the card.
    steps = [Items(lengths, number) for number, lengths in enumerate(STEPS)]
    with injector:
        injector.phase = "prepare"
        stepper.prepare_optimizer(optimizer)
        for number, items in enumerate(steps):
            if budgets:
                stepper.load_state({**stepper.state(), "tokens": budgets[number]})
            model.train()
            injector.phase = "forward and backward"
            stepper.run(items)
            used.append(stepper.budget.tokens)
            injector.phase = "clip"
            stepper.clip(0.5)
            injector.phase = "optimizer.step"
            stepper.apply(optimizer)
            optimizer.zero_grad()
        model.eval()
        injector.phase = "evaluation"
        items = steps[0]
        with torch.no_grad():
            rows = list(
                Sweep(Budget(30)).over(lambda i: model(**items.collate(i)[0]).logits.argmax(-1).tolist(), items.lengths)
            )
        assert sorted(i for piece, _ in rows for i in piece.indices) == list(range(len(items.lengths)))
        injector.phase = "save"
        saved = retried(lambda: {name: value.clone() for name, value in model.state_dict().items()})
    bits = b"".join(value.numpy().tobytes() for value in saved.values())
    return tuple(used), bits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    random.seed(0)
    start = new_model().state_dict()
    calm = Injector()
    train(calm, start)
    gc.collect()
    gc.freeze()
    baseline, plans = calm.live_bytes(), {}
    begin, wrong, tried = time.time(), [], range(0, calm.seen, args.every)
    for k in tried:
        injector = Injector(k)
        used, bits = train(injector, start)
        if used not in plans:
            plans[used] = train(Injector(), start, list(used))[1]
        gc.collect()
        if injector.failed != 1 or bits != plans[used] or injector.live_bytes() != baseline:
            wrong.append(k)
    result = {
        "allocations": calm.seen,
        "by_phase": calm.phases,
        "failed_at": len(tried),
        "different_splits": len(plans),
        "baseline_live_bytes": baseline,
        "wrong": wrong,
        "seconds": round(time.time() - begin),
    }
    print(json.dumps(result))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
