"""Loss and gradient of an optimizer step do not depend on how it is cut (huggingface/transformers#47688)."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification

from fitune.hf import Columns, Step, Trainer, training_arguments
from fitune.tasks.crf import LinearChainCrf
from fitune.tasks.learner import Learner
from fitune.values import Fit

TAGS = ("O", "B-a", "I-a", "B-b", "I-b")


def tiny(head: type, labels: int) -> Any:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        num_labels=labels,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return head(config)


def columns(task: str, class_weights: np.ndarray | None = None) -> Columns:
    rng = np.random.default_rng(1)
    lengths = np.array([5, 9, 3, 12, 7, 4, 11, 6])
    tokens = int(lengths.sum())
    starts = np.concatenate([[0], np.cumsum(lengths)])
    common: dict[str, Any] = {"ids_T": rng.integers(1, 50, tokens).astype(np.int32), "starts_W1": starts, "pad_id": 0}
    if task == "ner":
        labels = rng.integers(0, len(TAGS), tokens).astype(np.int16)
        labels[starts[:-1]] = labels[starts[1:] - 1] = -100
        weight = np.where(
            labels < 0, 0.0, (np.ones(len(TAGS)) if class_weights is None else class_weights)[labels.clip(0)]
        )
        return Columns(
            **common,
            example_starts_E1=np.arange(9),
            token_labels_T=labels,
            weights_W=np.add.reduceat(weight, starts[:-1]),
        )
    # Example 2 is a long text of three windows, each a third of it.
    share = np.array([1, 1, 1 / 3, 1 / 3, 1 / 3, 1, 1, 1])
    common |= {"example_starts_E1": np.array([0, 1, 2, 5, 6, 7, 8]), "shares_W": share}
    if task == "multi":
        return Columns(**common, targets_W=rng.integers(0, 2, (8, 3)).astype(np.float32), weights_W=share)
    targets = np.array([0, 1, 2, 2, 2, 1, 0, 2])
    weight = share if class_weights is None else share * class_weights[targets]
    return Columns(**common, targets_W=targets, weights_W=weight)


class Args:
    """What a test asks of the Trainer."""

    @staticmethod
    def make(tmp_path: Any, **fields: Any) -> Any:
        return training_arguments(
            output_dir=str(tmp_path), report_to="none", use_cpu=True, max_grad_norm=0.0, disable_tqdm=True, **fields
        )


def gradients(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def run_step(learner: Learner, data: Columns, cut: int | None, tmp_path: Any) -> tuple[float, torch.Tensor]:
    trainer = Trainer(model=learner, args=Args.make(tmp_path), fit=Fit(micro_batch=cut))
    learner.zero_grad()
    loss = trainer.training_step(learner, Step(data, np.arange(len(data))))
    return loss.item(), gradients(learner).clone()


@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1}, {"weights": True}, {"weights": True, "label_smoothing": 0.2}]
)
@pytest.mark.parametrize("task", ["ner", "classification", "multi", "crf"])
def test_loss_and_gradient_do_not_depend_on_the_cut(task: str, options: dict[str, Any], tmp_path: Any) -> None:
    classes = len(TAGS) if task in ("ner", "crf") else 3
    weights = np.linspace(0.5, 2.0, classes) if options.get("weights") else None
    if task == "crf" and options:
        pytest.skip("a CRF has neither")
    head = BertForTokenClassification if task in ("ner", "crf") else BertForSequenceClassification
    learner = Learner(
        tiny(head, classes),
        crf=LinearChainCrf(TAGS) if task == "crf" else None,
        multi_label=task == "multi",
        class_weights=None if weights is None else torch.tensor(weights, dtype=torch.float32),
        label_smoothing=options.get("label_smoothing", 0.0),
    )
    data = columns("ner" if task == "crf" else task, weights)
    # The reference: every window alone, in a plain loop, divided by the same total.
    step = Step(data, np.arange(len(data)))
    learner.zero_grad()
    expected = 0.0
    for window in range(len(step.lengths)):
        loss = learner(**step.collate([window]))[0] / step.total_weight
        loss.backward()
        expected += loss.item()
    reference = gradients(learner).clone()
    assert reference.abs().max() > 0
    for windows in (8, 4, 2, 1):
        loss, gradient = run_step(learner, data, windows, tmp_path)
        assert loss == pytest.approx(expected, rel=1e-6)
        torch.testing.assert_close(gradient, reference, rtol=1e-5, atol=1e-6 * reference.abs().max().item())


def test_total_weight_is_what_torch_divides_by() -> None:
    """Our sum over our total is exactly torch's own weighted, smoothed mean over the whole step."""
    weights = np.linspace(0.5, 2.0, len(TAGS))
    data = columns("ner", weights)
    learner = Learner(
        tiny(BertForTokenClassification, 5), class_weights=torch.tensor(weights).float(), label_smoothing=0.1
    )
    step = Step(data, np.arange(8))
    batch = step.collate(range(8))
    loss, logits = learner(**batch)
    mean = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch["labels"].flatten(), weight=torch.tensor(weights).float(), label_smoothing=0.1
    )
    assert loss.item() / step.total_weight == pytest.approx(mean.item(), rel=1e-6)


def padded_batch(task: str) -> dict[str, torch.Tensor]:
    data = columns(task)
    batch = data.collate(np.arange(len(data.starts_W1) - 1))
    batch.pop("weights", None)
    # As collators pad: to a round length, further than needed.
    pad = 16 - batch["input_ids"].shape[1]
    batch["input_ids"] = torch.nn.functional.pad(batch["input_ids"], (0, pad))
    batch["attention_mask"] = torch.nn.functional.pad(batch["attention_mask"], (0, pad))
    if task == "ner":
        batch["labels"] = torch.nn.functional.pad(batch["labels"], (0, pad), value=-100)
    return batch


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("task", ["ner", "classification"])
def test_a_users_script_has_the_gradient_of_the_uncut_batch(task: str, smoothing: float, tmp_path: Any) -> None:
    head = BertForTokenClassification if task == "ner" else BertForSequenceClassification
    model = tiny(head, 5 if task == "ner" else 3)
    batch = padded_batch(task)
    logits = model(**{k: v for k, v in batch.items() if k != "labels"}).logits
    expected = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), batch["labels"].reshape(-1), label_smoothing=smoothing
    )
    expected.backward()
    reference = gradients(model).clone()
    for accumulation in (1, 2, 4, 8):
        args = Args.make(
            tmp_path,
            per_device_train_batch_size=8 // accumulation,
            gradient_accumulation_steps=accumulation,
            label_smoothing_factor=smoothing,
        )
        trainer = Trainer(model=model, args=args, train_dataset=[{}] * 8)
        model.zero_grad()
        loss = trainer.training_step(model, dict(batch))
        assert trainer.last_result is not None
        assert trainer.last_result.passes == accumulation
        assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
        torch.testing.assert_close(gradients(model), reference, rtol=1e-5, atol=1e-6 * reference.abs().max().item())
