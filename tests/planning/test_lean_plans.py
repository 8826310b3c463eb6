"""The leanest plans of a job really train, with the batch kept: a small model on a virtual card, step by step."""

import math

import numpy as np
import pytest
import torch
from transformers import BertForTokenClassification

from fitune.hf import Columns, LoadedModel, Step
from fitune.memory import VirtualCard
from fitune.tasks import StepMachine, assemble, make_learner, make_task
from fitune.values import Fit
from tests.planning import small

LENGTH, BATCH = 128, 16
LEAN = Fit(micro_batch_tokens=LENGTH, checkpoint_every=1, optimizer="adamw_loop")


def step() -> Step:
    random = np.random.default_rng(0)
    tokens = BATCH * LENGTH
    return Step(
        Columns(
            ids_T=random.integers(1, 12000, tokens).astype(np.int32),
            starts_W1=np.arange(0, tokens + 1, LENGTH),
            example_starts_E1=np.arange(BATCH + 1),
            pad_id=0,
            token_labels_T=random.integers(0, 3, tokens).astype(np.int32),
            weights_W=np.full(BATCH, float(LENGTH)),
        ),
        np.arange(BATCH),
    )


def machine(fit: Fit, card: VirtualCard) -> StepMachine:
    job = small.job(learning_rate=1e-3, head_learning_rate=1e-3)

    def load(labels: tuple[str, ...], **_settings: object) -> LoadedModel:
        torch.manual_seed(0)
        config = small.config(layers=4)
        config.num_labels = len(labels)
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        return LoadedModel(BertForTokenClassification(config), (), ())

    learner = make_learner(job, fit, make_task(job, small.LABELS), load)
    card.adopt(learner)
    return assemble(job, fit, learner)


def train(fit: Fit, capacity: int | None = None, steps: int = 4) -> tuple[list[float], int]:
    card = VirtualCard(capacity)
    made = machine(fit, card)
    with card:
        losses = [float(made.run(step()).loss) for _number in range(steps)]
    return losses, card.peak_reserved_bytes


def test_the_leanest_exact_plan_trains_where_the_whole_step_does_not_fit() -> None:
    whole, needs = train(Fit(optimizer="adamw_loop"), steps=2)
    lean, takes = train(LEAN, steps=2)
    assert takes < 0.7 * needs
    # Equal up to the order of sums: the batch is kept, whatever the passes.
    assert lean == pytest.approx(whole, rel=1e-4)
    assert lean[-1] < lean[0]
    capacity = (takes + needs) // 2
    assert train(LEAN, capacity, steps=1)[0] == lean[:1]


def test_the_plan_with_8bit_state_trains() -> None:
    pytest.importorskip("bitsandbytes")
    losses, _peak = train(LEAN.model_copy(update={"optimizer": "adamw_8bit"}), steps=3)
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0]
