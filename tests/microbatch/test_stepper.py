import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.microbatch import Budget, Stepper

from .small import Items, Tagger, loss_sum_of


def gradients(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 200))
def test_any_split_has_the_loss_and_gradient_of_the_whole_step(lengths, tokens):
    torch.manual_seed(0)
    whole = Tagger()
    parts = copy.deepcopy(whole)
    items = Items(lengths)
    loss = loss_sum_of(whole)(items.collate(range(len(lengths)))) / items.total_weight
    loss.backward()
    result = Stepper(loss_sum_of(parts), parts, budget=Budget(tokens)).run(items)
    torch.testing.assert_close(result.loss, loss.detach(), rtol=1e-6, atol=1e-7)
    reference, ours = gradients(whole), gradients(parts)
    assert (ours - reference).norm() <= 1e-6 * reference.norm()


def test_the_same_split_gives_the_same_bits_with_dropout():
    torch.manual_seed(0)
    model = Tagger(dropout=0.3)
    seen = []
    for _ in range(2):
        torch.manual_seed(7)
        model.zero_grad()
        result = Stepper(loss_sum_of(model), model, budget=Budget(30)).run(Items([9, 3, 12, 12, 5]))
        seen.append((result.loss, gradients(model)))
    assert result.passes == 2
    assert torch.equal(seen[0][0], seen[1][0])
    assert torch.equal(seen[0][1], seen[1][1])


def test_a_step_without_weight_is_refused():
    model = Tagger()
    items = Items([3])
    items.__class__ = type("Weightless", (Items,), {"total_weight": 0.0})
    with pytest.raises(ValueError, match="total weight"):
        Stepper(loss_sum_of(model), model).run(items)
