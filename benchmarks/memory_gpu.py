"""Predicted against measured memory on a real GPU.

    python benchmarks/memory_gpu.py                 # all configurations; writes benchmarks/memory_gpu.md
    python benchmarks/memory_gpu.py --dry           # predictions alone, no GPU needed

Each configuration trains bert-base or a tiny stand-in with random weights for three steps under a memory fraction that
emulates a card of 8, 12, 16 or 24 GiB, and compares ``max_memory_reserved`` and ``max_memory_allocated`` with the
prediction for this card and PyTorch; "fits" and "does not fit" are compared as well.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from fitune.memory import Semantics, Trace, simulate_training
from fitune.memory.optimizers import optimizer_for
from fitune.memory.training_step import apply_fit
from fitune.values import Fit

GIB, MIB = 1 << 30, 1 << 20
PRECISIONS = {"fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Configuration:
    batch: int
    length: int
    precision: str
    attention: str
    checkpoint_every: int
    optimizer: str
    fraction_gib: int
    """The card that the memory fraction emulates."""

    @property
    def fit(self) -> Fit:
        return Fit.model_validate(
            {
                "precision": self.precision,
                "attention": self.attention,
                "checkpoint_every": self.checkpoint_every,
                "optimizer": self.optimizer,
            }
        )

    def __str__(self) -> str:
        kept = f", checkpoint every {self.checkpoint_every}" if self.checkpoint_every else ""
        return f"{self.batch} x {self.length} {self.precision} {self.attention} {self.optimizer}{kept}"


def configurations() -> list[Configuration]:
    """72: three shapes, precisions and kernels on four card sizes; optimizers and checkpointing take turns."""
    shapes = [(16, 128), (4, 512), (16, 512)]
    turns = itertools.cycle(
        [("adamw_fused", 0), ("adamw_foreach", 0), ("adamw_fused", 1), ("sgd", 0), ("adamw_loop", 2)]
    )
    base = [
        (shape, precision, attention, next(turns))
        for shape, precision, attention in itertools.product(shapes, ("fp32", "fp16", "bf16"), ("eager", "sdpa"))
    ]
    return [
        Configuration(*shape, precision, attention, every, optimizer, gib)
        for (shape, precision, attention, (optimizer, every)), gib in itertools.product(base, (8, 12, 16, 24))
    ]


def build(device: str, tiny: bool) -> Any:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = transformers.BertConfig(vocab_size=21128, num_labels=9, **(sizes if tiny else {}))
    with torch.device(device):
        return transformers.BertForTokenClassification(config)


def predict(configuration: Configuration, semantics: Semantics, tiny: bool) -> Trace:
    shape = (configuration.batch, configuration.length)
    return simulate_training(build("meta", tiny), configuration.fit, [shape], semantics=semantics)


def measure(configuration: Configuration, tiny: bool) -> tuple[int, int] | None:
    """(allocated, reserved) peaks of three real steps in bytes; None: out of memory."""
    torch.cuda.set_per_process_memory_fraction(
        min(1.0, configuration.fraction_gib * GIB / torch.cuda.get_device_properties(0).total_memory)
    )
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    try:
        train(configuration, tiny)
    except torch.OutOfMemoryError:
        return None
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def train(configuration: Configuration, tiny: bool) -> None:
    model = build("cuda", tiny).train()
    apply_fit(model, configuration.fit)
    optimizer = optimizer_for(configuration.optimizer, model)
    scaler = torch.amp.GradScaler("cuda", enabled=configuration.precision == "fp16")
    dtype = PRECISIONS.get(configuration.precision)
    for _ in range(3):
        ids = torch.randint(5, 21128, (configuration.batch, configuration.length), device="cuda")
        mask = torch.ones_like(ids)
        mask[:, -1] = 0
        labels = torch.zeros_like(ids)
        with torch.autocast("cuda", dtype=dtype, enabled=dtype is not None):
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        scaler.scale(loss).backward()
        del loss
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def row_of(configuration: Configuration, trace: Trace, measured: tuple[int, int] | None, dry: bool) -> list[str]:
    limit = configuration.fraction_gib * GIB
    fits = trace.replay(limit).fits
    predicted = f"{trace.replay(limit).peak_reserved_bytes / MIB:,.0f}" if fits else "does not fit"
    if dry:
        found, error = "not measured", ""
    elif measured is None:
        found, error = "does not fit", "WRONG" if fits else "agrees"
    else:
        found = f"{measured[1] / MIB:,.0f}"
        error = f"{100 * (trace.replay(limit).peak_reserved_bytes / measured[1] - 1):+.2f} %" if fits else "WRONG"
    return [str(configuration), str(configuration.fraction_gib), predicted, found, error]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="predict only")
    parser.add_argument("--limit", type=int, default=None, help="the first so many configurations")
    parser.add_argument("--tiny", action="store_true", help="a model of two narrow layers")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("memory_gpu.md"))
    options = parser.parse_args(arguments)
    if not options.dry and not torch.cuda.is_available():
        parser.error("there is no GPU here; --dry predicts without one")
    name, capability = ("no GPU", (8, 0)) if options.dry else _card()
    semantics = Semantics(compute_capability=capability)
    rows, errors, traces = list[list[str]](), list[float](), dict[Any, Trace]()
    for configuration in configurations()[: options.limit]:
        key = (configuration.fit, configuration.batch, configuration.length)
        trace = traces.get(key) or traces.setdefault(key, predict(configuration, semantics, options.tiny))
        rows.append(
            row_of(configuration, trace, None if options.dry else measure(configuration, options.tiny), options.dry)
        )
        if rows[-1][4].endswith("%"):
            errors.append(abs(float(rows[-1][4].removesuffix("%"))))
        print(*rows[-1], sep=" | ", flush=True)
    head = ["configuration", "card, GiB", "predicted reserved, MiB", "measured reserved, MiB", "error"]
    lines = [f"# Memory on {name} (torch {torch.__version__}, transformers {transformers.__version__})", ""]
    if errors:
        lines += [
            f"{len(errors)} measured: median error {statistics.median(errors):.2f} %, worst {max(errors):.2f} %.",
            "",
        ]
    lines += [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]
    options.out.write_text("\n".join(lines), encoding="utf-8")
    return 0


def _card() -> tuple[str, tuple[int, int]]:
    return torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0)


if __name__ == "__main__":
    raise SystemExit(main())
