"""The quick dropout of a CPU against its definition, and attention with it against the plain formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from fitune.hf import dropout
from fitune.hf.attending import DroppedAttention
from fitune.hf.dropout import HostDropout, KeepScales, has_quick_dropout, is_quick, quicken_dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_share_mean_and_scale(p: float) -> None:
    torch.manual_seed(3)
    count = 1_000_003  # not a whole number of words
    factors = KeepScales(p).draw(count)
    assert factors.shape == (count,)
    dropped = round(p * 65536) / 65536
    assert set(np.unique(factors.numpy())) == {np.float32(0), np.float32(1 / (1 - dropped))}
    share = float((factors == 0).float().mean())
    assert abs(share - dropped) < 5 * (p * (1 - p) / count) ** 0.5
    # Neighbours, and elements a word apart, are independent.
    gone = (factors == 0).double() - share
    for distance in (1, 2, 3, 4, 5, 768):
        correlation = float((gone[:-distance] * gone[distance:]).mean()) / (share * (1 - share))
        assert abs(correlation) < 5 / count**0.5


def test_torch_generator_decides() -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = KeepScales(0.1).draw(1000)
    other = KeepScales(0.1).draw(1000)
    torch.set_rng_state(state)
    assert torch.equal(KeepScales(0.1).draw(1000), first)
    assert not torch.equal(first, other)


def test_module_trains_and_rests() -> None:
    layer, ones = HostDropout(0.25), torch.ones(64, 64, requires_grad=True)
    torch.manual_seed(0)
    out = layer(ones)
    out.sum().backward()
    assert ones.grad is not None
    assert torch.equal(ones.grad, out.detach())  # the gradient passes where the value passed, scaled alike
    layer.eval()
    assert layer(ones) is ones


@pytest.mark.parametrize("p", [0.0, 1.0, 1e-9])
def test_shares_that_bits_cannot_tell_are_torchs(p: float) -> None:
    ones = torch.ones(8, 8)
    assert not is_quick(ones, p)
    assert torch.equal(HostDropout(p)(ones), functional.dropout(ones, p, True))


def test_half_precision_is_torchs() -> None:
    assert not is_quick(torch.ones(3, dtype=torch.bfloat16), 0.1)
    assert not is_quick(torch.ones(3, device="meta"), 0.1)


@pytest.mark.parametrize(("intel", "threads", "quick"), [(True, 3, False), (True, 2, True), (False, 3, True)])
def test_where_torch_draws_in_parallel_it_is_left_to_torch(
    intel: bool, threads: int, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dropout, "_is_intel", lambda: intel)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    model = nn.Sequential(nn.Dropout(0.2))
    quicken_dropout(model)
    assert has_quick_dropout(model) is quick


def test_every_plain_dropout_is_replaced() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.2)), nn.Dropout2d(0.2)).eval()
    before = set(model.state_dict())
    assert not has_quick_dropout(model)
    quicken_dropout(model)
    assert has_quick_dropout(model)
    inner = model[1][0]  # pyright: ignore[reportIndexIssue]
    assert isinstance(inner, HostDropout)
    assert inner.p == 0.2
    assert not inner.training
    assert type(model[2]) is nn.Dropout2d
    assert set(model.state_dict()) == before


GROUPS = [(1, 9), (3, 5), (2, 1)]


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_is_the_formula_with_the_same_factors(scale: float | None, dtype: torch.dtype) -> None:
    heads, size, tokens = 2, 4, sum(n * length for n, length in GROUPS)
    draw = torch.Generator().manual_seed(1)
    made = [torch.randn(tokens, heads, size, generator=draw, dtype=dtype) for _tensor in range(4)]
    quick = [tensor.clone().requires_grad_() for tensor in made[:3]]
    plain = [tensor.clone().requires_grad_() for tensor in made[:3]]

    torch.manual_seed(11)
    found = DroppedAttention.apply(*quick, GROUPS, 0.4, scale)
    torch.manual_seed(11)
    factors = KeepScales(0.4)
    rows, start = [], 0
    for windows, length in GROUPS:
        of_group = factors.draw(windows * heads * length * length).view(windows, heads, length, length).to(dtype)
        for window in range(windows):
            q, k, v = (t[start : start + length].transpose(0, 1) for t in plain)
            weights = torch.softmax(q @ k.transpose(1, 2) * (scale or size**-0.5), -1) * of_group[window]
            rows.append((weights @ v).transpose(0, 1))
            start += length
    expected = torch.cat(rows)

    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    assert torch.allclose(found, expected, atol=tolerance, rtol=0)
    (found * made[3]).sum().backward()
    (expected * made[3]).sum().backward()
    for one, other in zip(quick, plain, strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.allclose(one.grad, other.grad, atol=4 * tolerance, rtol=0)
