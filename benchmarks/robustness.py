"""The stock Hugging Face Trainer beside fitune where trainings go wrong: accumulation, memory, kill -9, resume.

    python benchmarks/robustness.py --json now.json
    python benchmarks/robustness.py --table benchmarks/robustness.md now.json [older.json]

Small BERTs on a CPU. Out-of-memory is the real exception, raised where a card would raise it: in the forward pass of a
micro-batch of more than MOST_ROWS rows. Kills are real (SIGKILL), at moments drawn over the time that a save takes.
The second form writes the table from what one or several versions of transformers gave.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import accelerate
import torch
import transformers
from robustness_kills import kill_in_saves
from transformers.trainer_utils import get_last_checkpoint

import fitune
from fitune.runs import Run
from fitune.training import Saving, train
from fitune.values import Fit, Job

ROWS, BATCH, MOST_ROWS, EPOCHS = 64, 8, 4, 2
CHARACTERS = "天地人你我他好坏大小上下来去吃喝看听说走"


class TokenRows(torch.utils.data.Dataset):
    """Rows whose numbers of labelled tokens differ, as in any real file."""

    def __init__(self, rows: int = ROWS) -> None:
        draw = torch.Generator().manual_seed(3)
        self.rows = []
        for _row in range(rows):
            ids = torch.randint(5, 60, (16,), generator=draw)
            labels = ids % 5
            labels[int(torch.randint(1, 16, (1,), generator=draw)) :] = -100
            self.rows.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels})

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return self.rows[index]


def new_model(hidden: int = 32, dropout: float = 0.1) -> Any:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=60 if hidden < 100 else 8000,
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=16,
        num_labels=5,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return transformers.BertForTokenClassification(config)


def trainer_of(kind: type, folder: Path, model: Any, **settings: Any) -> Any:
    given = {"per_device_train_batch_size": BATCH, "num_train_epochs": EPOCHS, "save_strategy": "no", **settings}
    parts = {name: given.pop(name) for name in ("callbacks", "optimizers", "compute_loss_func") if name in given}
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), report_to="none", use_cpu=True, disable_tqdm=True, logging_strategy="no", **given
    )
    return kind(model=model, args=arguments, train_dataset=TokenRows(), **parts)


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# -- accumulation ---------------------------------------------------------------------------------------------------


def accumulation(kind: type, folder: Path, **parts: Any) -> dict[str, float]:
    """One SGD step of 8 rows, cut in 1, 2, 4, 8: difference of the gradient to the uncut one, relative."""
    changes = {}
    for cuts in (1, 2, 4, 8):
        model = new_model(dropout=0.0)
        before = weights(model)
        settings = {"per_device_train_batch_size": BATCH // cuts, "gradient_accumulation_steps": cuts, "max_steps": 1}
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _step: 1.0)
        settings |= {"max_grad_norm": 0.0, "optimizers": (optimizer, schedule), **parts}
        trainer_of(kind, folder, model, **settings).train()
        changes[cuts] = weights(model) - before
    return {str(k): ((c - changes[1]).norm() / changes[1].norm()).item() for k, c in changes.items()}


def token_mean(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    """The loss function that a user of the stock Trainer may give so that accumulation is exact."""
    logits = outputs["logits"].flatten(0, 1)
    summed = torch.nn.functional.cross_entropy(logits, labels.flatten(), reduction="sum")
    return summed / num_items_in_batch


# -- out of memory ----------------------------------------------------------------------------------------------------


class Memory:
    """From training step 6 on (5 are done), a forward pass of more than MOST_ROWS rows runs out of memory."""

    def __init__(self, model: Any, once: bool) -> None:
        self.once, self.failures, self.passes = once, 0, 0
        model.register_forward_pre_hook(self.check, with_kwargs=True)

    def check(self, model: Any, _arguments: Any, named: dict[str, Any]) -> None:
        rows = len(named["input_ids"])
        self.passes += 1
        if not model.training or self.passes <= 5 or rows <= MOST_ROWS or (self.once and self.failures):
            return
        self.failures += 1
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")


class Watch(transformers.TrainerCallback):
    def __init__(self) -> None:
        self.begins, self.last, self.sizes = [], [], []

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self.begins.append(weights(rest["model"]).clone())
        self.last.append(0)
        self.sizes.append(state.max_steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **_rest: Any) -> None:
        self.last[-1] = state.global_step


def out_of_memory(kind: type, folder: Path, once: bool, automatic: bool = False) -> dict[str, Any]:
    """What a training of 16 steps of 8 rows does; the reference is the one without any failure."""
    reference = new_model(dropout=0.0)
    trainer_of(kind, folder, reference).train()
    model, watch = new_model(dropout=0.0), Watch()
    initial, memory = weights(model), Memory(model, once)
    trainer = trainer_of(kind, folder, model, callbacks=[watch], auto_find_batch_size=automatic)
    result: dict[str, Any] = {"ends": "completes"}
    try:
        trainer.train()
    except torch.OutOfMemoryError:
        result["ends"] = "crashes"
    return result | {
        "failures": memory.failures,
        "steps": watch.last,
        "planned_steps": watch.sizes,
        "batch_size_at_the_end": trainer._train_batch_size,
        "begins_again_with_initial_weights": [torch.equal(w, initial) for w in watch.begins[1:]],
        "difference": (weights(model) - weights(reference)).abs().max().item(),
    }


# -- kill -9 during a save, and resume ---------------------------------------------------------------------------------


def stock_run(kind: type, folder: Path, resume: bool) -> None:
    model = new_model(hidden=256)
    trainer = trainer_of(kind, folder, model, save_strategy="steps", save_steps=3)
    save, times = trainer._save_checkpoint, []

    def timed(*arguments: Any, **named: Any) -> None:
        begin = time.monotonic()
        save(*arguments, **named)
        times.append(time.monotonic() - begin)

    trainer._save_checkpoint = timed
    trainer.train(resume_from_checkpoint=True if resume and get_last_checkpoint(str(folder)) else None)
    (folder / "final.bin").write_bytes(weights(model).numpy().tobytes())
    (folder / "seconds").write_text(str(sorted(times)[len(times) // 2] if times else 0))


def stock_newest_loads(folder: Path) -> bool:
    """Does what ``get_last_checkpoint`` names hold all files, each of them readable?"""
    last = get_last_checkpoint(str(folder))
    if last is None:
        return False
    try:
        from safetensors.torch import load_file

        load_file(Path(last) / "model.safetensors")
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
            torch.load(Path(last) / name, weights_only=False)
        json.loads((Path(last) / "trainer_state.json").read_text())
    except Exception:  # noqa: BLE001 - whatever a damaged file raises
        return False
    return True


def stopped_in_the_middle(kind: type, root: Path) -> dict[str, Any]:
    """Dropout on, stopped after 5 of 16 steps, within the first epoch; resumed: the same bits?"""
    whole = new_model()
    trainer_of(kind, root / "a", whole).train()

    class Stop(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_rest: Any) -> None:
            control.should_save = control.should_training_stop = state.global_step == 5

    trainer_of(kind, root / "b", new_model(), callbacks=[Stop()]).train()
    model = new_model()
    trainer_of(kind, root / "b", model).train(resume_from_checkpoint=True)
    return {"same_bits": torch.equal(weights(whole), weights(model))}


def write_job(folder: Path, hidden: int, dropout: float) -> Job:
    """The files of ``fitune train``: a small BERT, 64 rows of entities."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS, *(f"w{n}" for n in range(7900))]
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=32,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    transformers.set_seed(0)
    transformers.BertModel(config).save_pretrained(folder / "model")
    transformers.BertTokenizerFast(str(folder / "model" / "vocab.txt")).save_pretrained(folder / "model")
    draw = random.Random(0)
    rows = []
    for _row in range(ROWS):
        text = "".join(draw.choices(CHARACTERS, k=draw.randrange(4, 24)))
        spans = [[i, i + 1, "X"] for i, c in enumerate(text) if c in "好坏"]
        rows.append(json.dumps({"text": text, "entities": spans}, ensure_ascii=False))
    (folder / "rows.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    data = {"train": str(folder / "rows.jsonl"), "dev": str(folder / "rows.jsonl"), "model": str(folder / "model")}
    return Job(**data, batch_size=BATCH, epochs=EPOCHS, max_length=32, patience=0, learning_rate=1e-3, head="softmax")


def fitune_train(root: Path, kills: int) -> dict[str, Any]:
    """The same questions to ``fitune train``."""
    from safetensors.torch import load_file

    from fitune.checkpoint import Store

    calm, small = write_job(root / "calm", 32, 0.0), write_job(root / "small", 32, 0.1)
    large = write_job(root / "large", 256, 0.1)
    found: dict[str, Any] = {}

    def final(name: str, job: Job = small, **settings: Any) -> torch.Tensor:
        run = train(job, run_directory=root / name, **settings)
        return torch.cat([t.flatten() for _n, t in sorted(load_file(run.model_path / "model.safetensors").items())])

    cuts = {k: final(f"cut{k}", calm, fit=Fit(micro_batch=BATCH // k)) for k in (1, 2, 4, 8)}
    found["accumulation_weights"] = {str(k): (w - cuts[1]).abs().max().item() for k, w in cuts.items()}
    found["resume"] = {"same_bits": _stopped_train(small, root, final)}

    def begin(folder: Path) -> None:
        train(large, run_directory=folder, saving=Saving(every_steps=3))

    def newest(folder: Path) -> bool:
        return Store(folder / "checkpoints").newest() is not None

    def seconds(folder: Path) -> float:
        times = sorted(e.data["seconds"] for e in Run(folder).events() if e.kind == "checkpoint")
        return times[len(times) // 2]

    found["kill"] = kill_in_saves(begin, begin, newest, seconds, "checkpoints/.writing-*", root / "kill", kills)
    return found


def _stopped_train(job: Job, root: Path, final: Any) -> bool:
    asked: list[int] = []

    def listen(event: Any) -> None:
        if event.kind == "step" and event.step == 4 and not asked:
            asked.append(1)
            os.kill(os.getpid(), signal.SIGTERM)

    whole = final("whole")
    train(job, run_directory=root / "stopped", listeners=[listen])
    assert Run(root / "stopped").events()[-1].data["reason"] == "interrupted"
    return torch.equal(whole, final("stopped"))


def measure(root: Path, kills: int) -> dict[str, Any]:
    stock, ours = transformers.Trainer, fitune.Trainer
    packages = {"transformers": transformers.__version__, "torch": torch.__version__}
    packages |= {"accelerate": accelerate.__version__, "fitune": fitune.__version__}
    result: dict[str, Any] = {"date": f"{datetime.date.today()}", "seed": 0, "versions": packages}
    for name, kind in (("stock", stock), ("fitune.Trainer", ours)):
        part: dict[str, Any] = {"accumulation": accumulation(kind, root / "x")}
        part["accumulation_own_loss"] = accumulation(kind, root / "x", compute_loss_func=token_mean)
        part["once"] = out_of_memory(kind, root / "x", once=True)
        part["above"] = out_of_memory(kind, root / "x", once=False)
        part["automatic"] = out_of_memory(kind, root / "x", once=False, automatic=True)
        part["resume"] = stopped_in_the_middle(kind, root / f"{name}-resume")
        part["kill"] = kill_in_saves(
            lambda folder, kind=kind: stock_run(kind, folder, False),
            lambda folder, kind=kind: stock_run(kind, folder, True),
            stock_newest_loads,
            lambda folder: float((folder / "seconds").read_text()),
            "checkpoint-*",
            root / f"{name}-kill",
            kills,
        )
        result[name] = part
    result["fitune train"] = fitune_train(root / "train", kills)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path, help="measure, and write the figures there")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--table", type=Path, nargs="+", help="the table to write, then figures")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.json:
        fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(dir=fast) as folder, contextlib.redirect_stdout(sys.stderr):
            result = measure(Path(folder), args.kills)
        args.json.write_text(json.dumps(result, indent=1))
    if args.table:
        from robustness_table import table

        args.table[0].write_text(table([json.loads(p.read_text()) for p in args.table[1:]]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
