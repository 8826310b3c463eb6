"""The Trainer as a whole: a user's script, the order of the rows, precision that gives way."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from fitune.hf import Columns, EpochOrder, NonFiniteLoss, Step, Trainer, training_arguments
from fitune.tasks.learner import Learner


def tiny_classifier() -> BertForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        num_labels=2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config)


def arguments(folder: Any, **fields: Any) -> Any:
    fixed: dict[str, Any] = {"report_to": "none", "use_cpu": True, "save_strategy": "no", "disable_tqdm": True}
    return training_arguments(output_dir=str(folder), **fixed, **fields)


def script(folder: Any, accumulation: int) -> torch.Tensor:
    """What a user writes, with one import changed; the weights after two epochs of 22 rows, 8 a step."""
    rng = np.random.default_rng(0)
    rows = [
        {"input_ids": rng.integers(1, 30, 8).tolist(), "attention_mask": [1] * 8, "labels": int(rng.integers(0, 2))}
        for _row in range(22)
    ]
    model = tiny_classifier()
    args = arguments(
        folder,
        per_device_train_batch_size=8 // accumulation,
        gradient_accumulation_steps=accumulation,
        num_train_epochs=2,
        learning_rate=1e-3,
        logging_steps=1,
    )
    trainer = Trainer(model=model, args=args, train_dataset=rows)
    trainer.train()
    assert trainer.state.global_step == 6  # ceil(22 / 8) steps an epoch
    first = next(entry["loss"] for entry in trainer.state.log_history if "loss" in entry)
    assert 0.3 < first < 1.5  # a mean, not a sum over accumulation steps
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_accumulation_does_not_change_what_a_script_learns(tmp_path: Any) -> None:
    whole, cut = script(tmp_path / "a", 1), script(tmp_path / "b", 4)
    torch.testing.assert_close(whole, cut, rtol=1e-4, atol=1e-5)


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        rows = EpochOrder(range(50), seed)
        rows.set_epoch(epoch)
        return list(rows)

    assert order(1, 3) == order(1, 3)
    assert sorted(order(1, 3)) == list(range(50))
    assert len({tuple(order(seed, epoch)) for seed in (1, 2) for epoch in (0, 1, 2)}) == 6
    # Ranks share the rows; the first ones fill up the last round.
    parts = [list(EpochOrder(range(50), 1, rank=rank, ranks=4)) for rank in range(4)]
    assert {len(part) for part in parts} == {13}
    assert {row for part in parts for row in part} == set(range(50))


class Overflowing(Learner):
    """A learner whose loss is not finite in fp16."""

    def forward(self, *args: Any, **inputs: Any) -> Any:
        precision, self.precision = self.precision, "fp32"
        try:
            loss, logits = super().forward(*args, **inputs)
        finally:
            self.precision = precision
        return (loss * float("inf") if precision == "fp16" else loss), logits


def few_rows() -> Columns:
    return Columns(
        ids_T=np.arange(1, 13, dtype=np.int32),
        starts_W1=np.array([0, 4, 8, 12]),
        example_starts_E1=np.arange(4),
        pad_id=0,
        targets_W=np.array([0, 1, 1]),
        shares_W=np.ones(3),
        weights_W=np.ones(3),
        places=["rows.csv:2", "rows.csv:3", "rows.csv:4"],
    )


def test_fp16_that_overflows_gives_way_and_says_so(tmp_path: Any) -> None:
    learner = Overflowing(tiny_classifier(), precision="fp16")
    trainer = Trainer(model=learner, args=arguments(tmp_path))
    said: list[tuple[str, str]] = []
    trainer.notice = lambda code, text: said.append((code, text))
    loss = trainer.training_step(learner, Step(few_rows(), np.arange(3)))
    assert torch.isfinite(loss)
    assert learner.precision == "fp32"
    assert [code for code, _text in said] == ["FT503"]
    assert all(torch.isfinite(p.grad).all() for p in learner.parameters() if p.grad is not None)


def test_a_loss_that_is_not_finite_names_its_rows(tmp_path: Any) -> None:
    learner = Learner(tiny_classifier())
    with torch.no_grad():
        learner.model.classifier.bias.fill_(float("nan"))
    trainer = Trainer(model=learner, args=arguments(tmp_path))
    with pytest.raises(NonFiniteLoss, match=r"rows\.csv:2, rows\.csv:4"):
        trainer.training_step(learner, Step(few_rows(), np.array([0, 2])))
    assert all(p.grad is None or not p.grad.any() for p in learner.parameters())
