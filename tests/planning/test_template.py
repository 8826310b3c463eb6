"""Two traces stand for all shapes: held against direct simulation, which knows nothing of templates."""

from typing import Any

import pytest
import torch

from fitune.memory import Semantics, VirtualCard, simulate
from fitune.planning.models import MetaLoader
from fitune.planning.template import crf_bytes, trace_template
from fitune.tasks import LinearChainCrf, make_learner, make_optimizer_of, make_task
from fitune.values import Fit
from tests.planning import small


def directly(fit: Fit, steps: list[list[tuple[int, int]]]) -> int:
    """Peak reserved bytes of real shapes, simulated one by one."""
    job = small.job(learning_rate=1e-5, head_learning_rate=1e-3)
    learner = make_learner(job, fit, make_task(job, small.LABELS), MetaLoader(small.config()))
    learner.train()
    optimizer = make_optimizer_of(learner, job, fit)
    scale: Any = torch.empty((), device="meta") if fit.precision == "fp16" else None
    todo = iter(steps)

    def step() -> None:
        for shape in next(todo):
            names = ("input_ids", "attention_mask", "token_type_ids", "labels")
            loss = learner(**{n: torch.empty(shape, dtype=torch.long, device="meta") for n in names})[0] / 7
            (loss if scale is None else loss * scale).backward()
            del loss
        if scale is not None:
            grads = [p.grad for p in learner.parameters() if p.grad is not None]
            found, inverse = torch.zeros((), device="meta"), torch.ones((), device="meta")
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimizer.step()
        learner.zero_grad()

    sm = (7, 5) if fit.precision == "fp16" else (8, 0)
    semantics = Semantics(compute_capability=sm)
    return simulate(step, resident=[learner], steps=len(steps), semantics=semantics).peak_reserved_bytes


@pytest.mark.parametrize(
    ("fit", "aligned"),
    [
        (Fit(), True),
        (Fit(precision="fp16"), False),
        (Fit(precision="fp16", checkpoint_every=1), True),
    ],
    ids=lambda value: str(getattr(value, "precision", value)),
)
def test_a_template_says_what_direct_simulation_says(fit: Fit, aligned: bool) -> None:
    length = 512 if aligned else 500
    sequence = [
        [(16, length), (16, length)],
        [(9, length), (16, length // 4), (16, 64)],
        [(16, length)],
        [(16, length), (3, length)],
    ]
    template = trace_template(
        small.job(), fit, small.LABELS, MetaLoader(small.config()), aligned=aligned, segments=True
    )
    said, real = template.replay(sequence).reserved_bytes, directly(fit, sequence)
    assert real <= said * 1.002
    assert said == pytest.approx(real, rel=0.02)


def test_a_crf_takes_no_more_than_is_counted_for_it() -> None:
    types = ("a", "b", "c", "d")
    classes = ["O", *(f"{mark}-{name}" for name in types for mark in "BI")]
    crf = LinearChainCrf(classes)
    batch, length = 8, 48
    logits = torch.randn(batch, length, len(classes), requires_grad=True)
    labels = torch.zeros(batch, length, dtype=torch.long)
    card = VirtualCard()
    card.adopt(crf, logits, labels)
    before = card.live_bytes
    with card:
        crf.negative_log_likelihood(logits, labels).sum().backward()
    counted = crf_bytes((batch, length), len(classes))
    assert card.peak_live_bytes - before <= counted
    assert counted < 4 * (card.peak_live_bytes - before)
