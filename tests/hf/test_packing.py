"""A pack gives every window what it gets alone: logits, gradients, attention, positions."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    ElectraConfig,
    ElectraForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
    XLMRobertaForTokenClassification,
)

from fitune.hf import LAYOUT, CannotPack, Packing
from fitune.hf.layout import LIKE_LENGTHS, Layout, like_lengths

LENGTHS = (6, 19, 1, 6, 30, 11, 12, 13)
SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 40,
    "num_labels": 5,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
HEADS = {
    "bert-token": (BertForTokenClassification, BertConfig),
    "bert-sequence": (BertForSequenceClassification, BertConfig),
    "xlmr-token": (XLMRobertaForTokenClassification, XLMRobertaConfig),
    "xlmr-sequence": (XLMRobertaForSequenceClassification, XLMRobertaConfig),
}
if int(transformers.__version__.split(".")[0]) >= 5:  # before, ELECTRA wrote its attention out
    HEADS["electra-sequence"] = (ElectraForSequenceClassification, ElectraConfig)


def model_of(kind: str, dtype: torch.dtype = torch.float32, **changed: Any) -> Any:
    head, config = HEADS[kind]
    torch.manual_seed(1)
    options = SIZES | ({"pad_token_id": 1} if "xlmr" in kind else {"pad_token_id": 0}) | changed
    model = head(config(**options)).to(dtype)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "position_embeddings" in name:
                parameter.mul_(20)  # a wrong position must show
    return model


def batch_of(kind: str, lengths: tuple[int, ...] = LENGTHS) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    ids = torch.randint(4, 60, mask.shape, generator=generator)
    batch = {"input_ids": torch.where(mask, ids, 1 if "xlmr" in kind else 0), "attention_mask": mask.long()}
    if kind.startswith("bert"):
        batch["token_type_ids"] = (torch.arange(max(lengths)) > 4).long() * mask.long()
    return batch


def alone(model: Any, batch: dict[str, torch.Tensor], lengths: tuple[int, ...] = LENGTHS) -> list[torch.Tensor]:
    rows = [
        {name: value[row : row + 1, :length] for name, value in batch.items()} for row, length in enumerate(lengths)
    ]
    return [model(**row).logits[0] for row in rows]


def rows_of(logits: torch.Tensor, lengths: tuple[int, ...] = LENGTHS) -> list[torch.Tensor]:
    return [logits[row, :length] if logits.dim() == 3 else logits[row] for row, length in enumerate(lengths)]


def gradients(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat(
        [torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in model.parameters()]
    )


@pytest.mark.parametrize("kind", HEADS)
def test_logits_are_those_of_each_window_alone(kind: str) -> None:
    model, batch = model_of(kind).eval(), batch_of(kind)
    with torch.no_grad():
        expected = alone(model, batch)
        packing = Packing(model)
        logits = packing.logits(packing.pack(batch))
    for found, wanted in zip(rows_of(logits), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
    if logits.dim() == 3:
        assert not logits[batch["attention_mask"] == 0].any()


@pytest.mark.parametrize("kind", HEADS)
def test_gradients_are_those_of_the_windows_alone(kind: str) -> None:
    model, batch = model_of(kind, torch.float64).train(), batch_of(kind)
    torch.manual_seed(4)
    pulls = [torch.randn_like(logits) for logits in alone(model, batch)]
    sum((logits * pull).sum() for logits, pull in zip(alone(model, batch), pulls, strict=True)).backward()
    expected = gradients(model).clone()
    model.zero_grad()
    packing = Packing(model)
    found = rows_of(packing.logits(packing.pack(batch)))
    sum((logits * pull).sum() for logits, pull in zip(found, pulls, strict=True)).backward()
    assert expected.abs().max() > 0
    assert (gradients(model) - expected).norm() <= 1e-6 * expected.norm()


def test_gradients_hold_in_single_precision() -> None:
    model, batch = model_of("bert-token"), batch_of("bert-token")
    sum(logits.square().sum() for logits in alone(model, batch)).backward()
    expected = gradients(model).clone()
    model.zero_grad()
    packing = Packing(model)
    packing.logits(packing.pack(batch)).square().sum().backward()
    assert (gradients(model) - expected).norm() <= 1e-6 * expected.norm()


@pytest.mark.parametrize("kind", ["bert-token", "xlmr-sequence"])
def test_padded_sorted_micro_batches_give_the_same(kind: str) -> None:
    model, batch = model_of(kind).eval(), batch_of(kind)
    with torch.no_grad():
        expected = alone(model, batch)
        logits = model(**batch).logits
    for found, wanted in zip(rows_of(logits), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", HEADS)
def test_no_window_sees_another(kind: str) -> None:
    """Changing one window leaves the logits of all others bit for bit as they were."""
    model, batch = model_of(kind).eval(), batch_of(kind)
    packing = Packing(model)
    with torch.no_grad():
        before = rows_of(packing.logits(packing.pack(batch)))
        changed = dict(batch)
        changed["input_ids"] = batch["input_ids"].clone()
        changed["input_ids"][4, :30] = 33
        after = rows_of(packing.logits(packing.pack(changed)))
    for row in range(len(LENGTHS)):
        assert torch.equal(before[row], after[row]) == (row != 4)


def test_positions_restart() -> None:
    batch = batch_of("bert-token", (3, 5))
    packing = Packing(model_of("bert-token"))
    packed = packing.pack(batch)
    assert packed["position_ids"].tolist() == [[0, 1, 2, 3, 4, 0, 1, 2]]
    assert packed["input_ids"][0].tolist() == [*batch["input_ids"][1].tolist(), *batch["input_ids"][0, :3].tolist()]
    other = Packing(model_of("xlmr-token")).pack(batch_of("xlmr-token", (3, 5)))
    assert other["position_ids"].tolist() == [[2, 3, 4, 5, 6, 2, 3, 4]]


def test_dropout_gives_distributions() -> None:
    """With value vectors of ones the attention's output is the sum of the kept weights: mean 1, and it varies."""
    layout = Layout(torch.arange(30) < torch.tensor([[30], [11], [10], [10], [2]]))
    query, key = torch.randn(2, 1, 2, layout.tokens, 8, generator=torch.Generator().manual_seed(0))
    ones = torch.ones(1, 2, layout.tokens, 8)
    whole = layout.attend(query, key, ones, dropout=0.0, scale=None)
    torch.testing.assert_close(whole, ones)
    torch.manual_seed(0)
    sums = torch.stack([layout.attend(query, key, ones, dropout=0.1, scale=None)[..., 0] for _ in range(200)])
    assert sums.min() >= 0
    assert sums.std(0).min() > 0
    torch.testing.assert_close(sums.mean(), torch.tensor(1.0), atol=0.01, rtol=0)


def test_dropout_in_training_and_none_in_evaluation() -> None:
    model, batch = (
        model_of("bert-token", hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2),
        batch_of("bert-token"),
    )
    packing = Packing(model)
    packed = packing.pack(batch)
    assert not torch.equal(packing.logits(packed), packing.logits(packed))
    model.eval()
    assert torch.equal(packing.logits(packed), packing.logits(packed))


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_checkpointed_layers_run_the_same_pack_again(dropout: float) -> None:
    model = model_of("bert-token", torch.float64, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    batch = batch_of("bert-token")
    packing = Packing(model)

    def step() -> torch.Tensor:
        model.train()
        model.zero_grad()
        torch.manual_seed(5)
        packing.logits(packing.pack(batch)).square().sum().backward()
        return gradients(model).clone()

    plain = step()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if packing.way == "torch":  # padded from now on, with other draws of dropout
        assert LAYOUT not in packing.pack(batch)
        assert step().abs().max() > 0
        with pytest.raises(CannotPack):
            Packing(model)
    else:
        torch.testing.assert_close(step(), plain)


def test_a_model_that_cannot_prove_itself_is_left_as_it_was() -> None:
    """DistilBERT's classifier takes token 0 of each row itself, out of any hook's reach."""
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=60, dim=16, n_layers=1, n_heads=2, hidden_dim=32, max_position_embeddings=40)
    model = DistilBertForSequenceClassification(config).eval()
    before = model.config._attn_implementation
    batch = batch_of("distil")
    with torch.no_grad():
        expected = model(**batch).logits
        with pytest.raises(CannotPack):
            Packing(model)
        assert model.config._attn_implementation == before
        assert torch.equal(model(**batch).logits, expected)


def test_take_off_gives_the_model_back() -> None:
    model, batch = model_of("bert-sequence").eval(), batch_of("bert-sequence")
    with torch.no_grad():
        expected = model(**batch).logits
        packing = Packing(model)
        if packing.way == "interface":
            with pytest.raises(RuntimeError, match="packed"):
                model(**batch)
        packing.take_off()
        assert torch.equal(model(**batch).logits, expected)


def test_a_proof_leaves_random_generators_alone() -> None:
    model = model_of("bert-token")
    torch.manual_seed(9)
    state = torch.get_rng_state()
    Packing(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.training


def test_saved_config_does_not_name_the_pack(tmp_path: Any) -> None:
    model = model_of("bert-token")
    Packing(model)
    model.save_pretrained(tmp_path)
    assert "fitune" not in (tmp_path / "config.json").read_text()
    loaded = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert loaded.config._attn_implementation in ("sdpa", "eager")


def test_layout_goes_there_and_back() -> None:
    rng = np.random.default_rng(0)
    for _case in range(50):
        lengths = rng.integers(1, 40, rng.integers(1, 9))
        mask = torch.arange(int(lengths.max())) < torch.from_numpy(lengths).unsqueeze(1)
        layout = Layout(mask)
        values = torch.randn(*mask.shape, 3) * mask.unsqueeze(-1)
        packed = torch.stack([layout.pack(values[..., c])[0] for c in range(3)], -1).unsqueeze(0)
        assert packed.shape == (1, int(lengths.sum()), 3)
        assert torch.equal(layout.unpack(packed), values)
        firsts = layout.unpack_rows(layout.first_tokens(packed)[:, 0])
        assert torch.equal(firsts, values[:, 0])


def test_groups_hold_every_window_once() -> None:
    assert like_lengths([30, 21, 20, 19, 5, 4], 1.5) == [(0, 3), (3, 4), (4, 6)]
    assert like_lengths([7, 7, 6, 6, 6], 1.0) == [(0, 2), (2, 5)]
    assert like_lengths([7], 1.0) == [(0, 1)]


@pytest.mark.parametrize("ratio", [1.0, 1.5, 100.0])
def test_attention_does_not_depend_on_the_grouping(ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIKE_LENGTHS, "cpu", ratio)
    lengths = [30, 11, 10, 10, 2, 1]
    layout = Layout(torch.arange(30) < torch.tensor(lengths).unsqueeze(1))
    query, key, value = torch.randn(3, 1, 2, layout.tokens, 8, generator=torch.Generator().manual_seed(0))
    found = layout.attend(query, key, value, dropout=0.0, scale=0.3)
    start = 0
    for length in lengths:
        at = slice(start, start + length)
        expected = ((query[:, :, at] @ key[:, :, at].mT) * 0.3).softmax(-1) @ value[:, :, at]
        torch.testing.assert_close(found[:, :, at], expected)
        start += length


def test_pack_says_when_a_window_is_empty() -> None:
    with pytest.raises(ValueError, match="without tokens"):
        Layout(torch.tensor([[True, True], [False, False]]))


def test_layout_travels_under_one_name() -> None:
    assert LAYOUT in Packing(model_of("bert-token")).pack(batch_of("bert-token"))
