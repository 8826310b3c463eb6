"""Out-of-memory at every single allocation of a training loop."""

import copy
import gc
import random

import numpy as np
import pytest
import torch
from torch import nn

from fitune.microbatch import Budget, DoesNotFit, Stepper, Sweep, retried

from .injector import Card
from .small import Items, Little, Tagger, loss_sum_of

STEPS = [Items([9, 3, 12, 12, 5], seed=1), Items([4, 4, 11], seed=2), Items([7, 7, 7, 7], seed=3)]


def new_model():
    torch.manual_seed(0)
    return Little()


OPTIMIZERS = {
    "adamw_fused": lambda ps: torch.optim.AdamW(ps, lr=1e-2, fused=True),
    "adamw_foreach": lambda ps: torch.optim.AdamW(ps, lr=1e-2, foreach=True),
    "adamw_loop": lambda ps: torch.optim.AdamW(ps, lr=1e-2, foreach=False),
    "adamw_amsgrad": lambda ps: torch.optim.AdamW(ps, lr=1e-2, foreach=False, amsgrad=True),
    "sgd": lambda ps: torch.optim.SGD(ps, lr=1e-2, momentum=0.9),
    "adafactor": lambda ps: torch.optim.Adafactor(ps, lr=1e-2),
    "rmsprop": lambda ps: torch.optim.RMSprop(ps, lr=1e-2),
}


def train(budgets, card, optimizer_name="adamw_fused"):
    """Three steps, evaluation and a copy for saving, all under ``card``; budgets: one a step, or one for all."""
    model = new_model()
    optimizer = OPTIMIZERS[optimizer_name](model.parameters())
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)
    used = []
    planned = budgets if isinstance(budgets, list) else None
    stepper = Stepper(loss_sum_of(model), model, budget=None if planned else budgets, protect_optimizer="always")
    sweep = Sweep(Budget(30))
    with card:
        stepper.prepare_optimizer(optimizer)
        for number, items in enumerate(STEPS):
            if planned:
                stepper._governor.tokens = planned[number]
            model.train()
            stepper.run(items)
            used.append(stepper.budget.tokens)
            stepper.clip(0.5)
            stepper.apply(optimizer)
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            items = STEPS[0]
            found = {}
            for piece, best in sweep.over(lambda i: model(*items.collate(i)[:2]).argmax(-1).tolist(), items.lengths):
                found.update(zip(piece.indices, best, strict=True))
        assert sorted(found) == list(range(len(items.lengths)))
        saved = retried(lambda: {name: value.clone() for name, value in model.state_dict().items()})
        del found, best
    return used, saved, stepper, optimizer


def bits(saved):
    return {name: value.numpy().tobytes() for name, value in saved.items()}


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_out_of_memory_at_every_allocation_ends_in_the_weights_of_a_run_planned_with_the_same_splits(every):
    calm = Card()
    _, undisturbed, *_ = train(Budget(48), calm)
    plans = {(48, 48, 48): bits(undisturbed)}
    for k in range(0, calm.allocations, every):
        card = Card(fail_at=k)
        used, saved, *_ = train(Budget(48), card)
        assert card.failures == 1
        if tuple(used) not in plans:
            plans[tuple(used)] = bits(train(used, Card())[1])
        assert bits(saved) == plans[tuple(used)], f"allocation {k}"
    assert len(plans) > 3


def test_nothing_is_held_after_a_failure():
    def live_after(card):
        model = new_model()
        stepper = Stepper(loss_sum_of(model), model, budget=Budget(48))
        with card:
            for items in STEPS:
                loss = stepper.run(items).loss
                model.zero_grad()
            del loss
        gc.disable()
        try:
            return card.live_bytes()
        finally:
            gc.enable()

    calm = Card()
    baseline = live_after(calm)
    for k in range(0, calm.allocations, 17):
        assert live_after(Card(fail_at=k)) == baseline


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_an_optimizer_step_is_never_half_applied(name):
    model = new_model()
    optimizer = OPTIMIZERS[name](model.parameters())
    stepper = Stepper(loss_sum_of(model), model, protect_optimizer="always")
    stepper.prepare_optimizer(optimizer)
    stepper.run(STEPS[0])
    # From the first step on, and from the second, when state exists whatever the class.
    for _ in range(2):
        start, state = copy.deepcopy(model), copy.deepcopy(optimizer.state_dict())
        gradients = [p.grad.clone() for p in model.parameters()]

        def fresh(start=start, state=state, gradients=gradients):
            again = copy.deepcopy(start)
            other = OPTIMIZERS[name](again.parameters())
            other.load_state_dict(copy.deepcopy(state))
            for parameter, gradient in zip(again.parameters(), gradients, strict=True):
                parameter.grad = gradient.clone()
            return again, other, Stepper(loss_sum_of(again), again, protect_optimizer="always")

        again, other, by = fresh()
        calm = Card()
        with calm:
            by.apply(other)
        expected = bits(again.state_dict())
        assert expected != bits(start.state_dict())
        if name == "adamw_fused":
            assert calm.allocations == 0
        every = 1 if name == "adamw_loop" else 5
        for k in range(0, calm.allocations, every):
            again, other, by = fresh()
            card = Card(fail_at=k)
            with card:
                by.apply(other)
            assert card.failures == 1
            assert bits(again.state_dict()) == expected
        # Always out of memory: refused, and nothing is changed.
        again, other, by = fresh()
        if name not in ("adamw_fused", "sgd"):  # which allocate nothing
            with Card(fail_at=range(calm.allocations - 1, 10_000)), pytest.raises(DoesNotFit) as caught:
                by.apply(other)
            assert caught.value.code == "FT302"
            assert bits(again.state_dict()) == bits(start.state_dict())
        stepper.apply(optimizer)


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_prepared_state_is_what_the_first_step_would_have_made(name):
    results = []
    for prepared in (False, True):
        model = new_model()
        optimizer = OPTIMIZERS[name](model.parameters())
        stepper = Stepper(loss_sum_of(model), model)
        if prepared:
            assert stepper.prepare_optimizer(optimizer) == (name not in ("adafactor", "rmsprop"))
        torch.manual_seed(1)
        for items in STEPS:
            stepper.run(items)
            optimizer.step()
            optimizer.zero_grad()
        results.append(bits(model.state_dict()))
    assert results[0] == results[1]


def test_a_small_card_settles_on_a_budget_that_fits():
    model = new_model()
    items = Items([40, 3, 38, 12, 40, 40, 7, 40], seed=5)
    changes = []
    model.zero_grad()
    stepper = Stepper(loss_sum_of(model), model, on_change=changes.append)
    gradient_bytes = sum(p.nbytes for p in model.parameters())
    with Card(capacity_bytes=gradient_bytes * 2 + 25_000) as card:
        result = stepper.run(items)
    assert result.retries == len(changes) == card.failures > 1
    assert stepper.budget.tokens >= 40
    assert [c.to_tokens for c in changes] == sorted((c.to_tokens for c in changes), reverse=True)
    assert changes[0].from_tokens is None


def test_one_window_that_does_not_fit_turns_the_knobs_and_then_stops_with_everything_as_it_was():
    model = new_model()
    turned = []

    class Knob:
        def __init__(self, name):
            self.name = name

        def turn(self):
            turned.append(self.name)
            return True

    stepper = Stepper(loss_sum_of(model), model, knobs=[Knob("checkpoint_every"), Knob("attention")])
    stepper.run(Items([10]))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    before, rng = bits(model.state_dict()), torch.get_rng_state()
    python, numpy = random.getstate(), np.random.get_state()[1].tobytes()
    items = Items([12, 30])
    collate = items.collate

    def spoil(indices):
        random.random()
        np.random.rand()
        return collate(indices)

    items.collate = spoil
    with Card(fail_at=range(20, 10_000)), pytest.raises(DoesNotFit) as caught:
        stepper.run(items)
    finding = caught.value.finding
    assert finding.code == "FT301"
    assert "30" in finding.title
    assert any("10 tokens" in line for line in finding.evidence)
    assert turned == ["checkpoint_every", "attention"]
    assert bits(model.state_dict()) == before
    assert torch.equal(torch.get_rng_state(), rng)
    assert random.getstate() == python
    assert np.random.get_state()[1].tobytes() == numpy
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in model.parameters())
    assert stepper.state()["knobs"] == turned


def test_gradients_that_were_there_are_added_to():
    model = Tagger()
    stepper = Stepper(loss_sum_of(model), model)
    stepper.run(STEPS[0])
    fresh = [p.grad.clone() for p in model.parameters()]
    for parameter in model.parameters():
        parameter.grad.fill_(1.0)
    with Card(fail_at=25):
        stepper.run(STEPS[0])
    for parameter, gradient in zip(model.parameters(), fresh, strict=True):
        torch.testing.assert_close(parameter.grad, gradient + 1)


def test_another_error_is_not_survived():
    model = Tagger()

    def broken(_inputs):
        raise RuntimeError("CUDA error: device-side assert triggered")

    calls = []
    stepper = Stepper(broken, model, on_change=calls.append)
    with pytest.raises(RuntimeError, match="device-side assert"):
        stepper.run(STEPS[0])
    assert not calls


def test_the_budget_grows_back_carefully():
    model = Tagger()
    changes = []
    stepper = Stepper(loss_sum_of(model), model, budget=Budget(48), on_change=changes.append)
    with Card(fail_at=20):
        stepper.run(STEPS[0])
    assert stepper.budget.tokens < 48
    for _ in range(200):
        stepper.run(STEPS[0])
        model.zero_grad()
    assert stepper.budget.tokens == 48
    assert [c.reason for c in changes][:2] == ["out_of_memory", "memory_returned"]
    # Growing into a wall returns to what was good, and waits twice as long.
    with Card(fail_at=20):
        stepper.run(STEPS[0])
    low = stepper.budget.tokens
    for _ in range(31):
        stepper.run(STEPS[0])
    with Card(fail_at=20):
        stepper.run(STEPS[0])
    assert changes[-2].reason == "memory_returned"
    assert stepper.budget.tokens == low
    assert stepper._governor.wait_steps == 64
    other = Stepper(loss_sum_of(model), model)
    other.load_state(stepper.state())
    assert other.budget.tokens == low


def test_a_rehearsal_leaves_no_trace_but_the_budget():
    model = new_model()
    stepper = Stepper(loss_sum_of(model), model)
    before, rng = bits(model.state_dict()), torch.get_rng_state()
    with Card(fail_at=20):
        assert stepper.rehearse(STEPS[0]) == 1
    assert stepper.budget.tokens is not None
    assert bits(model.state_dict()) == before
    assert torch.equal(torch.get_rng_state(), rng)
    assert all(p.grad is None for p in model.parameters())


def test_the_state_of_an_unwrapped_step_is_checked_when_it_is_not_protected():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    stepper = Stepper(lambda x: model(x).sum(), model, protect_optimizer="never")
    stepper.prepare_optimizer(optimizer)
    model(torch.ones(1, 3)).sum().backward()
    counting = Card()
    with counting:
        stepper.apply(optimizer)
    with Card(fail_at=counting.allocations - 1), pytest.raises(RuntimeError, match="middle of an optimizer step"):
        stepper.apply(optimizer)
