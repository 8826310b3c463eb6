"""Models of many families run under the simulator, in every precision and kernel that they have."""

from typing import Any

import pytest
import torch

from fitune.memory import Semantics, ddp_buckets, example_inputs, simulate, simulate_training, token_inputs
from fitune.values import Fit

transformers = pytest.importorskip("transformers")

SMALL: dict[str, Any] = {
    "vocab_size": 500,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
DISTIL = {"vocab_size": 500, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
GPT = {"vocab_size": 500, "n_embd": 64, "n_layer": 2, "n_head": 4}

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertConfig", SMALL),
    "roberta": ("RobertaConfig", SMALL),
    "xlm-roberta": ("XLMRobertaConfig", SMALL),
    "electra": ("ElectraConfig", {**SMALL, "embedding_size": 32}),
    "albert": ("AlbertConfig", {**SMALL, "embedding_size": 32}),
    "deberta-v2": (
        "DebertaV2Config",
        {**SMALL, "relative_attention": True, "position_buckets": 32, "pos_att_type": ["p2c", "c2p"]},
    ),
    "modernbert": ("ModernBertConfig", {**SMALL, **SPECIAL}),
    "distilbert": ("DistilBertConfig", DISTIL),
    "ernie": ("ErnieConfig", SMALL),
    "qwen2": ("Qwen2Config", {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0}),
    "gpt2": ("GPT2Config", {**GPT, "pad_token_id": 0}),
}


def model_of(family: str, head: str = "AutoModelForSequenceClassification", **extra: Any) -> torch.nn.Module:
    name, settings = FAMILIES[family]
    config = getattr(transformers, name)(**{**settings, **extra})
    with torch.device("meta"):
        return getattr(transformers, head).from_config(config)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trains_under_the_simulator(family: str) -> None:
    trace = simulate_training(model_of(family), Fit(), [(4, 64)], inputs=example_inputs, steps=2)
    weights = sum(s.size_bytes for s in trace.storages if s.phase == "resident")
    assert trace.peak_allocated_bytes > 3.5 * weights
    assert any(s.phase == "backward" and s.module for s in trace.storages)
    assert sum(op.flops for op in trace.ops) > 0


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "modernbert"])
def test_precisions_and_checkpointing(family: str) -> None:
    peaks: dict[str, int] = {}
    for name, fit in {
        "fp32": Fit(),
        "fp16": Fit(precision="fp16"),
        "bf16": Fit(precision="bf16"),
        "checkpointed": Fit(checkpoint_every=1, precision="fp16"),
    }.items():
        model = model_of(family, num_hidden_layers=4)
        trace = simulate_training(model, fit, [(16, 256)], inputs=example_inputs, steps=2)
        peaks[name] = trace.peak_allocated_bytes
    assert peaks["checkpointed"] < peaks["fp16"] < peaks["fp32"]
    assert peaks["bf16"] < peaks["fp32"]


def test_eager_takes_more_than_sdpa_and_half_padding_free_batches_take_less() -> None:
    def peak(fit: Fit, **semantics: Any) -> int:
        model = model_of("bert", "AutoModelForTokenClassification")
        return simulate_training(model, fit, [(8, 256)], semantics=Semantics(**semantics), steps=2).peak_allocated_bytes

    assert peak(Fit(attention="eager")) > peak(Fit()) > peak(Fit(), padded=False)
    assert peak(Fit(precision="bf16"), compute_capability=(7, 5)) > peak(Fit(precision="bf16"))


def test_the_second_micro_batch_finds_gradients() -> None:
    one = simulate_training(model_of("bert"), Fit(), [(4, 64)], inputs=example_inputs).peak_allocated_bytes
    two = simulate_training(model_of("bert"), Fit(), [(4, 64)] * 2, inputs=example_inputs).peak_allocated_bytes
    four = simulate_training(model_of("bert"), Fit(), [(4, 64)] * 4, inputs=example_inputs).peak_allocated_bytes
    assert one < two == four


def test_frozen_layers_and_lora_take_no_gradients() -> None:
    peft = pytest.importorskip("peft")

    def optimizer_bytes(model: torch.nn.Module, fit: Fit) -> int:
        trace = simulate_training(model, fit, [(2, 32)], inputs=example_inputs, steps=2)
        return sum(s.size_bytes for s in trace.storages if s.phase == "optimizer" and s.op == "zeros_like")

    full = optimizer_bytes(model_of("bert"), Fit())
    frozen = optimizer_bytes(model_of("bert"), Fit(frozen_layers=2))
    adapters: Any = peft.get_peft_model(
        model_of("bert"), peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
    )
    assert optimizer_bytes(adapters, Fit()) < frozen < full


def test_ddp_holds_a_second_copy_of_the_gradients() -> None:
    model = model_of("bert", hidden_size=512, num_hidden_layers=8)
    buckets = ddp_buckets(model)
    parameters = sum(p.numel() for p in model.parameters())
    assert sum(b.numel() for b in buckets) == 4 * parameters
    assert len(buckets) > 2
    alone = simulate_training(model, Fit(), [(2, 32)], inputs=example_inputs, steps=2)
    ranks = simulate_training(model, Fit(), [(2, 32)], inputs=example_inputs, steps=2, resident=buckets)
    assert ranks.peak_allocated_bytes - alone.peak_allocated_bytes >= 4 * parameters


def test_token_inputs_of_packed_batches_have_no_mask() -> None:
    assert "attention_mask" in token_inputs(2, 8)
    assert "attention_mask" not in token_inputs(2, 8, masked=False)


def test_any_step_of_any_module_can_be_simulated() -> None:
    with torch.device("meta"):
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(4)
        )
        model(torch.empty(1, 3, 16, 16))

    def step() -> None:
        model(torch.empty(8, 3, 16, 16, device="meta")).sum().backward()
        model.zero_grad()

    assert simulate(step, resident=[model]).peak_allocated_bytes > 0
