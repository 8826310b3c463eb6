"""Packed or padded, a learner's losses, gradients and predictions are the same; so is what a step holds."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification

from fitune.hf import LAYOUT, Columns, Step
from fitune.microbatch import Budget, Stepper
from fitune.tasks import Learner, LinearChainCrf

TAGS = ("O", "B-a", "I-a", "B-b", "I-b")
LENGTHS = np.array([5, 9, 3, 12, 7, 4, 11, 6])


def columns(kind: str) -> Columns:
    draw = np.random.default_rng(1)
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    common: dict[str, Any] = {
        "ids_T": draw.integers(1, 50, starts[-1]).astype(np.int32),
        "starts_W1": starts,
        "example_starts_E1": np.arange(9),
        "pad_id": 0,
    }
    if kind in ("ner", "crf"):
        labels = draw.integers(0, len(TAGS), starts[-1]).astype(np.int16)
        labels[starts[:-1]] = labels[starts[1:] - 1] = -100
        return Columns(**common, token_labels_T=labels, weights_W=(LENGTHS - 2).astype(float))
    targets: Any = draw.integers(0, 2, (8, 3)).astype(np.float32) if kind == "multi" else draw.integers(0, 3, 8)
    return Columns(**common, targets_W=targets, shares_W=np.ones(8), weights_W=np.ones(8))


def learner_of(kind: str) -> Learner:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        num_labels=5 if kind in ("ner", "crf") else 3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    head = BertForTokenClassification if kind in ("ner", "crf") else BertForSequenceClassification
    crf = LinearChainCrf(TAGS) if kind == "crf" else None
    return Learner(head(config), crf=crf, multi_label=kind == "multi").double()


def step_gradient(learner: Learner, data: Columns, tokens: int | None, packs_first: bool) -> tuple[float, torch.Tensor]:
    def loss_sum(inputs: dict[str, Any]) -> torch.Tensor:
        return learner(**(learner.pack(inputs) if packs_first else inputs))[0]

    learner.train()
    learner.zero_grad()
    result = Stepper(loss_sum, learner, budget=Budget(tokens)).run(Step(data, np.arange(8)))
    return result.loss.item(), torch.cat([p.grad.flatten() for p in learner.parameters() if p.grad is not None]).clone()


@pytest.mark.parametrize("packs_first", [True, False])
@pytest.mark.parametrize("tokens", [None, 40, 12])
@pytest.mark.parametrize("kind", ["ner", "crf", "classification", "multi"])
def test_loss_and_gradient_of_a_step(kind: str, tokens: int | None, packs_first: bool) -> None:
    learner, data = learner_of(kind), columns(kind)
    expected_loss, expected = step_gradient(learner, data, None, False)
    learner.run_packed()
    loss, gradient = step_gradient(learner, data, tokens, packs_first)
    assert learner.packing is not None
    assert loss == pytest.approx(expected_loss, rel=1e-6)
    assert (gradient - expected).norm() <= 1e-6 * expected.norm()


@pytest.mark.parametrize("kind", ["ner", "crf", "classification"])
def test_logits_stand_where_the_padded_ones_do(kind: str) -> None:
    learner, data = learner_of(kind).float().eval(), columns(kind)
    batch = data.collate(np.array([3, 0, 5]))
    with torch.inference_mode():
        expected = learner(**batch)[1]
        learner.run_packed()
        found = learner(**batch)[1]
        learner.run_padded()
        again = learner(**batch)[1]
    present = batch["attention_mask"].bool() if expected.dim() == 3 else slice(None)
    torch.testing.assert_close(found[present], expected[present], rtol=0, atol=1e-5)
    assert torch.equal(again, expected)


def test_packing_on_the_host_keeps_labels_and_names_no_mask() -> None:
    learner = learner_of("ner")
    batch = columns("ner").collate(np.array([1, 2]))
    assert learner.pack(batch) is batch
    learner.run_packed()
    packed = learner.pack(batch)
    assert LAYOUT in packed
    assert "attention_mask" not in packed
    assert packed["input_ids"].shape == (1, 12)
    assert torch.equal(packed["labels"], batch["labels"])
