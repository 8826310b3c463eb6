"""What a step through the Stepper costs over the bare loop when nothing goes wrong: CPU time, paired.

    python benchmarks/stepper_overhead.py

Both do the same passes on the same model and windows: collate, forward, backward of each micro-batch. They take turns,
in an order that alternates, so that the machine's moods hit both; the figure is the median of the paired ratios.
"""

import argparse
import json
import statistics
import sys
import time

import torch
import transformers

from fitune.microbatch import Budget, Stepper, split


class Items:
    def __init__(self, lengths) -> None:
        generator = torch.Generator().manual_seed(0)
        self.lengths = list(lengths)
        self.ids = [torch.randint(5, 1000, (n,), generator=generator) for n in lengths]

    @property
    def total_weight(self) -> float:
        return float(sum(self.lengths))

    def collate(self, indices):
        ids = torch.nn.utils.rnn.pad_sequence([self.ids[i] for i in indices], batch_first=True)
        mask = torch.arange(ids.shape[1])[None] < torch.tensor([self.lengths[i] for i in indices])[:, None]
        return {"input_ids": ids, "attention_mask": mask.long()}, mask, ids % 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=40)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=1000,
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=512,
        num_labels=5,
    )
    model = transformers.BertForTokenClassification(config)
    items, budget = Items([64, 60, 48, 40, 33, 20, 17, 9] * 2), Budget(512)

    def loss_sum(inputs):
        batch, mask, targets = inputs
        return torch.nn.functional.cross_entropy(model(**batch).logits[mask], targets[mask], reduction="sum")

    stepper = Stepper(loss_sum, model, budget=budget)

    def bare():
        total = torch.zeros(())
        for piece in split(items.lengths, budget):
            loss = loss_sum(items.collate(piece.indices)) / items.total_weight
            loss.backward()
            total = total + loss.detach()

    def ours():
        stepper.run(items)

    def cpu_seconds(run) -> float:
        model.zero_grad()
        begin = time.process_time()
        run()
        return time.process_time() - begin

    for run in (bare, ours, bare, ours):
        cpu_seconds(run)
    ratios, plain = [], []
    for number in range(args.pairs):
        order = (bare, ours) if number % 2 else (ours, bare)
        seconds = {run: cpu_seconds(run) for run in order}
        ratios.append(seconds[ours] / seconds[bare])
        plain.append(seconds[bare])
    median = statistics.median(ratios)
    low, _, high = statistics.quantiles(ratios, n=4)
    print(
        json.dumps(
            {
                "pairs": args.pairs,
                "bare_step_seconds": round(statistics.median(plain), 4),
                "overhead_percent": round(100 * (median - 1), 2),
                "quartiles_percent": [round(100 * (low - 1), 2), round(100 * (high - 1), 2)],
            }
        )
    )
    return int(median > 1.02)


if __name__ == "__main__":
    sys.exit(main())
