"""The simulated step: CUDA's rules, the books, speed, and PyTorch left as it was."""

import time
import tracemalloc

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint as recompute

from fitune.memory import DataDependent, Semantics, Trace, VirtualCard, shadow, simulate
from fitune.memory.optimizers import AdamW8bit, optimizer_for

MIB = 1 << 20


def made_by(trace: Trace, op: str, phase: str = "forward") -> list[int]:
    return [s.size_bytes for s in trace.storages if s.op == op and s.phase == phase]


def run(function: object, *tensors: torch.Tensor, **semantics: object) -> Trace:
    def step() -> None:
        function(*tensors).sum().backward()  # type: ignore[operator]
        for tensor in tensors:
            tensor.grad = None

    return simulate(step, resident=tensors, steps=1, semantics=Semantics(**semantics))  # type: ignore[arg-type]


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, device="meta", dtype=dtype, requires_grad=True)


def saved_bytes(trace: Trace) -> int:
    """Alive when the backward starts, beyond what was there before."""
    backward = next(
        n for n, event in enumerate(trace.events) if event > 0 and trace.storages[event - 1].phase == "backward"
    )
    return sum(s.size_bytes for s in trace.alive(backward - 1) if s.phase != "resident" and "workspace" not in s.op)


def test_dropout_keeps_a_byte_mask() -> None:
    trace = run(lambda x: nn.functional.dropout(x, 0.1), leaf(1024, 1024))
    assert made_by(trace, "native_dropout") == [4 * MIB, MIB]
    assert run(lambda x: nn.functional.dropout(x, 0.1, training=False), leaf(8, 8)).ops


@pytest.mark.parametrize(
    ("dtype", "card", "padded", "per_score"),
    [
        (torch.float32, (8, 0), False, 0),
        (torch.float16, (8, 0), False, 0),
        (torch.float16, (7, 5), False, 0),
        (torch.bfloat16, (7, 5), False, 9),
        (torch.bfloat16, (8, 0), True, 0),
    ],
)
def test_attention_keeps_what_its_kernel_keeps(
    dtype: torch.dtype, card: tuple[int, int], padded: bool, per_score: int
) -> None:
    batch, heads, length, width = 2, 4, 256, 64
    mask = torch.empty(batch, 1, length, length, device="meta", dtype=torch.bool) if padded else None

    def attention(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x, mask, dropout_p=0.1)

    saved = saved_bytes(run(attention, leaf(batch, heads, length, width, dtype=dtype), compute_capability=card))
    scores, tokens = batch * heads * length * length, batch * heads * length
    item = torch.empty((), dtype=dtype).element_size()
    least = scores * per_score + (tokens * width * item if per_score == 0 else 0)
    bias = batch * length * length * item if padded else 0
    extra = 6 * tokens * width * 4 if per_score else 0  # the fp32 copies that the math path makes
    assert least + bias <= saved <= least + bias + extra + tokens * 4 + 64


def test_autocast_has_cudas_lists_and_caches_weight_casts_only() -> None:
    linear = nn.Linear(512, 512, device="meta")

    def step() -> None:
        with torch.autocast("cuda", dtype=torch.float16):
            x = torch.empty(64, 512, device="meta")
            y = linear(x) + linear(x)
            assert y.dtype == torch.float16
            assert nn.functional.layer_norm(y, (512,)).dtype == torch.float32
            assert torch.softmax(y, -1).dtype == torch.float32
            assert (y @ y.T).dtype == torch.float16
            assert torch.cat([y, x]).dtype == torch.float32
            assert y.sum().dtype == torch.float32
            assert (
                nn.functional.cross_entropy(y, torch.empty(64, dtype=torch.long, device="meta")).dtype == torch.float32
            )
            with torch.autocast("cuda", enabled=False):
                assert (x @ x.T).dtype == torch.float32

    trace = simulate(step, resident=[linear], steps=1)
    casts = made_by(trace, "_to_copy")
    assert casts.count(512 * 512 * 2) == 1
    assert casts.count(64 * 512 * 2) == 2


def test_softmax_of_older_versions_keeps_its_input() -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2, -1)

    today = saved_bytes(run(doubled, leaf(512, 512)))
    earlier = saved_bytes(run(doubled, leaf(512, 512), torch_version=(1, 10)))
    assert earlier - today == 512 * 512 * 4


def test_checkpointing_recomputes_under_the_same_rules() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = nn.Linear(256, 1024), nn.Linear(1024, 256)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + nn.functional.dropout(self.outer(nn.functional.gelu(self.inner(x))), 0.1, self.training)

    def peak(checkpointed: bool) -> int:
        with torch.device("meta"):
            blocks = nn.ModuleList(Block() for _ in range(12))

        def step() -> None:
            x = torch.empty(4096, 256, device="meta")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                for block in blocks:
                    x = recompute(block, x, use_reentrant=False) if checkpointed else block(x)
            x.float().sum().backward()

        trace = simulate(step, resident=[blocks], steps=2)
        assert any(s.op == "native_dropout" and s.module for s in trace.storages)
        return trace.peak_allocated_bytes

    assert peak(True) < peak(False) / 2


@pytest.mark.parametrize(
    ("name", "state", "temporaries"),
    [
        ("adamw_fused", 2.0, 0.0),
        ("adamw_foreach", 2.0, 1.0),
        ("adamw_loop", 2.0, 0.25),
        ("adamw_8bit", 0.5, 0.0),
        ("sgd", 0.0, 0.0),
        ("adafactor", 0.0, 0.75),
    ],
)
def test_optimizers_take_their_state_and_temporaries(name: str, state: float, temporaries: float) -> None:
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(8)))
    optimizer = optimizer_for(name, model)

    def step() -> None:
        for parameter in model.parameters():
            parameter.grad = torch.empty_like(parameter)
        optimizer.step()
        optimizer.zero_grad()

    trace = simulate(step, resident=[model], steps=2)
    weights = 8 * 4 * MIB
    held = trace.replay(timeline=True).timeline[-1][0] - sum(trace.storages[n].size_bytes for n in trace.workspaces)
    assert held - weights == pytest.approx(state * weights, abs=0.05 * weights)
    peak = trace.peak_allocated_bytes - held - weights
    assert peak == pytest.approx(temporaries * weights, abs=0.26 * weights)


def test_8bit_states_follow_the_block_layout() -> None:
    with torch.device("meta"):
        big, small = nn.Parameter(torch.empty(1000, 100)), nn.Parameter(torch.empty(4095))
    optimizer = AdamW8bit([big, small])
    for parameter in (big, small):
        parameter.grad = torch.empty_like(parameter)
    optimizer.step()
    assert optimizer.state[big]["absmax1"].numel() == 391
    assert optimizer.state[big]["state1"].dtype == torch.uint8
    assert optimizer.state[small]["state1"].dtype == torch.float32


def test_a_value_that_decides_a_shape_is_refused_and_a_logged_loss_is_not() -> None:
    x = leaf(4, 4)
    simulate(lambda: float(x.sum()) + x.sum().item(), resident=[x], steps=1)
    lengths = torch.empty(4, dtype=torch.long, device="meta")
    with pytest.raises(DataDependent):
        simulate(lambda: int(lengths.max()), steps=1)
    read: list[int] = []
    simulate(lambda: read.append(int(lengths.max())), steps=1, semantics=Semantics(read_integer=512))
    assert read == [512]


@pytest.mark.parametrize("padded", [True, False])
def test_numbers_are_finite_and_a_mask_says_whether_there_is_padding(padded: bool) -> None:
    x = leaf(4, 4)
    seen: list[bool] = []

    def step() -> None:
        mask = torch.empty(4, 4, dtype=torch.bool, device="meta")
        seen.extend([bool(torch.isfinite(x).all()), bool(x.isnan().any()), bool(~x.isinf().any()), bool(mask.all())])

    simulate(step, resident=[x], steps=1, semantics=Semantics(padded=padded))
    assert seen == [True, False, True, not padded]


def test_pytorch_is_left_as_it_was() -> None:
    before = torch.autocast.__init__, torch.clear_autocast_cache, nn.functional.has_torch_function
    with pytest.raises(ZeroDivisionError):
        simulate(lambda: 1 / 0, steps=1)
    assert before == (torch.autocast.__init__, torch.clear_autocast_cache, nn.functional.has_torch_function)
    assert nn.functional.dropout(torch.ones(4), 0.0).sum() == 4


def test_a_shadow_shares_nothing_and_ties_what_was_tied() -> None:
    model = nn.ModuleDict({"a": nn.Linear(64, 64), "b": nn.Linear(64, 64)})
    model["b"].weight = model["a"].weight
    twin = shadow(model)
    assert twin["a"].weight.device.type == "meta"
    assert twin["a"].weight is twin["b"].weight
    assert model["a"].weight.device.type == "cpu"


def test_summary_is_json_and_replay_needs_no_second_trace() -> None:
    import json

    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))

    def step() -> None:
        model(torch.empty(512, 1024, device="meta")).sum().backward()
        model.zero_grad()

    trace = simulate(step, resident=[model], steps=2)
    summary = json.loads(json.dumps(trace.summary()))
    assert summary["peak_reserved_bytes"] >= summary["peak_allocated_bytes"] > 32 * MIB
    assert summary["step_flops"] == 2 * 512 * 1024 * 4096 * 2 * 3 - 2 * 512 * 1024 * 4096
    assert {entry["module"] for entry in summary["largest_at_peak"]} & {"0", "1", "2", "0.weight", "2.weight"}
    assert trace.replay(trace.peak_reserved_bytes).fits
    small = trace.replay(trace.peak_allocated_bytes - 1)
    assert not small.fits
    assert small.failed_at is not None
    hopper = trace.replay(compute_capability=(9, 0))
    assert hopper.peak_allocated_bytes - trace.peak_allocated_bytes == 2 * (32 * MIB - 8_519_680)


def encoder(device: str) -> nn.Module:
    layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.1, batch_first=True, activation="gelu")
    model = nn.Sequential(
        nn.Linear(16, 128), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(128, 4)
    )
    return model.to(device)


def test_predicted_and_counted_agree_to_the_byte_on_the_cpus_own_rules() -> None:
    def training(model: nn.Module, device: str) -> object:
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

        def step() -> None:
            x = torch.empty(4, 96, 16, device=device).fill_(0.5)
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    real, twin = encoder("cpu"), encoder("meta")
    card = VirtualCard()
    card.adopt(real)
    step = training(real, "cpu")
    with card:
        for _ in range(3):
            step()  # type: ignore[operator]
    trace = simulate(training(twin, "meta"), resident=[twin], steps=3, semantics=Semantics(cuda=False))  # type: ignore[arg-type]
    assert trace.peak_allocated_bytes == card.peak_live_bytes
    assert trace.peak_reserved_bytes == card.peak_reserved_bytes


@pytest.mark.slow
def test_a_bert_base_step_takes_little() -> None:
    transformers = pytest.importorskip("transformers")
    from fitune.memory import simulate_training
    from fitune.values import Fit

    with torch.device("meta"):
        model = transformers.BertForTokenClassification(transformers.BertConfig(vocab_size=21128))
    simulate_training(model, Fit(), [(1, 8)], steps=1)  # imports
    tracemalloc.start()
    started = time.process_time()
    simulate_training(model, Fit(), [(16, 512)])
    assert (time.process_time() - started) / 3 < 3
    assert tracemalloc.get_traced_memory()[1] < 200 * MIB
    tracemalloc.stop()
