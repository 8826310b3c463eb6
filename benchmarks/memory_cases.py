"""Is "fits" ever wrong? Random training jobs, predicted on meta tensors, then run on a virtual card of about that size.

    python benchmarks/memory_cases.py --cases 300 --seed 0

Each case draws a model (layers, widths, heads, dropout), a batch, a length, fp32 or bf16 weights, and activation
checkpointing; the prediction is made with the CPU's own rules and the real step is run on a ``VirtualCard`` of a random
size around the prediction. Under-prediction is the failure that matters: "fits" must never be wrong, and where the job
fitted the peaks must agree to the byte.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from fitune.memory import Semantics, VirtualCard, simulate


@dataclass(frozen=True)
class Case:
    layers: int
    heads: int
    hidden: int
    inner: int
    vocabulary: int
    dropout: float
    batch: int
    length: int
    dtype: torch.dtype
    checkpointing: bool
    fused_attention: bool
    optimizer: str
    share: float
    """Size of the card as a share of the predicted peak."""


class Block(nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case
        self.qkv = nn.Linear(case.hidden, 3 * case.hidden)
        self.out = nn.Linear(case.hidden, case.hidden)
        self.inner, self.outer = nn.Linear(case.hidden, case.inner), nn.Linear(case.inner, case.hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(case.hidden) for _ in range(2))
        self.dropout = nn.Dropout(case.dropout)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, hidden = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.case.heads, -1).permute(2, 0, 3, 1, 4)
        if self.case.fused_attention:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=self.case.dropout)
        else:
            mixed = self.dropout(torch.softmax(q @ k.transpose(-1, -2) * q.size(-1) ** -0.5, -1)) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norms[0](x + self.dropout(self.attention(x)))
        return self.norms[1](x + self.dropout(self.outer(nn.functional.gelu(self.inner(x)))))


class Encoder(nn.Module):
    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case
        self.words = nn.Embedding(case.vocabulary, case.hidden)
        self.blocks = nn.ModuleList(Block(case) for _ in range(case.layers))
        self.head = nn.Linear(case.hidden, 9)

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.case.checkpointing else block(x)
        return nn.functional.cross_entropy(self.head(x).flatten(0, 1).float(), labels.flatten())


def draw(dice: random.Random) -> Case:
    heads = dice.choice([1, 2, 4])
    hidden = heads * dice.choice([8, 16, 32])
    return Case(
        layers=dice.randint(1, 4),
        heads=heads,
        hidden=hidden,
        inner=hidden * dice.choice([2, 4]),
        vocabulary=dice.randint(50, 3000),
        dropout=dice.choice([0.0, 0.1]),
        batch=dice.randint(1, 12),
        length=dice.randint(4, 160),
        dtype=dice.choice([torch.float32, torch.bfloat16]),
        checkpointing=dice.random() < 0.4,
        fused_attention=dice.random() < 0.5,
        optimizer=dice.choice(["adamw", "sgd"]),
        share=dice.choice([0.9, 0.97, 1.0, 1.0, 1.03, 1.1]),
    )


def step_of(model: Encoder, case: Case, device: str) -> Callable[[], None]:
    if case.optimizer == "adamw":
        optimizer: torch.optim.Optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)

    def step() -> None:
        ids = torch.zeros(case.batch, case.length, dtype=torch.long, device=device)
        model(ids, torch.zeros_like(ids)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        optimizer.step()
        optimizer.zero_grad()

    return step


@dataclass(frozen=True)
class Outcome:
    predicted_bytes: int
    counted_bytes: int
    said_fits: bool
    did_fit: bool


def try_case(case: Case) -> Outcome:
    with torch.device("meta"):
        twin = Encoder(case).to(case.dtype)
    trace = simulate(step_of(twin, case, "meta"), resident=[twin], semantics=Semantics(cuda=False))
    limit = int(trace.peak_reserved_bytes * case.share)
    said = trace.replay(limit).fits
    model = Encoder(case).to(case.dtype)
    card = VirtualCard(limit)
    step = step_of(model, case, "cpu")
    did = True
    try:
        card.adopt(model)
        with card:
            for _ in range(3):
                step()
    except torch.OutOfMemoryError:
        did = False
    return Outcome(trace.peak_allocated_bytes, card.peak_live_bytes, said, did)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dice = random.Random(options.seed)
    wrong_fits = wrong_refusals = unequal = fitted = 0
    for number in range(options.cases):
        case = draw(dice)
        outcome = try_case(case)
        fitted += outcome.did_fit
        if outcome.said_fits and not outcome.did_fit:
            wrong_fits += 1
            print("WRONG fits:", case, outcome)
        if not outcome.said_fits and outcome.did_fit:
            wrong_refusals += 1
        if outcome.did_fit and outcome.predicted_bytes != outcome.counted_bytes:
            unequal += 1
            print("not to the byte:", case, outcome)
        if (number + 1) % 25 == 0:
            print(f"{number + 1} cases", flush=True)
    print(
        f"{options.cases} cases (seed {options.seed}), {fitted} fitted: 'fits' wrong {wrong_fits}, "
        f"'does not fit' wrong {wrong_refusals}, peak not to the byte {unequal}"
    )


if __name__ == "__main__":
    main()
