"""Choosing: cards, levels, margins, reasons, money; what the user chose stays."""

import numpy as np
import pytest

from fitune.catalog import card_of, cards, offers
from fitune.planning import usable_bytes
from fitune.planning.money import price_of
from fitune.planning.outcome import MARGIN_BYTES, MARGIN_SHARE
from fitune.planning.planner import plan_here
from fitune.planning.searching import Search, demand, fidelity_of, ladder, precision_of
from fitune.planning.timing import LOW, pass_seconds
from fitune.planning.workload import resolve_open
from fitune.values import Card, Fidelity, Fit, Offer
from tests.planning import small

T4 = card_of("t4")


@pytest.fixture(scope="module")
def search() -> Search:
    return small.search()


def with_usable(usable: int) -> Card:
    """A T4 of which a plan may take so much."""
    return T4.model_copy(update={"memory_bytes": int((usable + MARGIN_BYTES) / (1 - MARGIN_SHARE)) + 1})


def test_the_whole_catalogue_needs_few_traces(search: Search) -> None:
    planning = plan_here(small.job(), cards(), offers=offers(), search=search)
    assert search.traces <= 2
    assert len(planning.plans) == len(cards())
    assert [p.card.id for p in planning.plans[:2]] in (["t4", "a10g"], ["a10g", "t4"])
    seconds = [p.estimate.predicted_seconds for p in planning.plans[2:] if p.estimate]
    assert seconds == sorted(seconds)
    assert all(p.estimate is None for p in planning.plans if p.card.id in ("cpu", "apple"))
    for plan in planning.plans:
        assert plan.job.batch_size == 16
        if plan.estimate:
            assert plan.estimate.predicted_peak_bytes <= usable_bytes(plan.card)
            low, high = plan.estimate.predicted_seconds_low, plan.estimate.predicted_seconds_high
            assert low < plan.estimate.predicted_seconds < high  # type: ignore[operator]
    faster = {p.card.id: p.estimate.predicted_seconds for p in planning.plans if p.estimate}
    assert faster["h100"] < faster["a100-40g"] < faster["gtx1060-6g"]


def test_a_smaller_card_gets_a_leaner_fit_and_reasons(search: Search) -> None:
    whole = search.predict(Fit(precision="fp16"), T4).peak_bytes
    roomy, tight, tiny = (
        plan_here(small.job(), [with_usable(size)], search=search) for size in (2 * whole, whole - 1, 300 << 20)
    )
    assert roomy.plans[0].estimate
    assert roomy.plans[0].fit.micro_batch_tokens is None
    plan = tight.plans[0]
    assert plan.estimate
    assert plan.estimate.predicted_peak_bytes <= usable_bytes(plan.card) < whole
    assert plan.fit.micro_batch_tokens is not None
    assert f"needs {whole / 2**30:.1f} GiB" in plan.rejected[0].reason
    assert not tiny.plans
    assert [r.fidelity for r in tiny.unfit[0].rejected][-1] == Fidelity.DIFFERENT


def test_levels_change_as_little_as_they_can() -> None:
    assert [fidelity_of(fits[0]) for fits in ladder(card_of("gtx1060-6g"), "rounding", 12)] == [
        Fidelity.EXACT,
        Fidelity.EXACT,
        Fidelity.ROUNDING,
        Fidelity.ROUNDING,
        Fidelity.DIFFERENT,
    ]
    assert all(fidelity_of(fit) == Fidelity.EXACT for fits in ladder(T4, "exact", 12) for fit in fits)
    assert fidelity_of(Fit(optimizer="adafactor")) == Fidelity.DIFFERENT
    assert fidelity_of(Fit(micro_batch_tokens=512, checkpoint_every=2, attention="eager")) == Fidelity.EXACT
    assert [precision_of(card_of(c)) for c in ("gtx1060-6g", "t4", "v100-16g", "rtx3060-12g", "h20")] == [
        "fp32",
        "fp16",
        "fp16",
        "bf16",
        "bf16",
    ]


def test_the_heaviest_micro_batch_of_all_epochs_decides() -> None:
    wanted = small.workload(rows=200)
    lengths = np.random.default_rng(1).integers(8, 200, 200)
    lengths[17] = 256
    object.__setattr__(wanted, "lengths_W", lengths)
    whole = demand(wanted, None)
    assert whole.heaviest[1] == 256
    assert whole.steps == 13
    cut = demand(wanted, 1024)
    # Lengths are counted in eights.
    assert all(b * (length - 7) <= 1024 for b, length in cut.shapes)
    assert cut.heaviest in cut.sequence[-1]
    assert sum(b * n for (b, _length), n in cut.shapes.items()) == 200
    assert cut.sequence.count(cut.sequence[-1]) == 2


def test_open_choices_are_trainings_own() -> None:
    defaults = pytest.importorskip("fitune.training.defaults")
    for ner in (True, False):
        for rows in (10, 1_999, 2_000, 4_999, 5_000, 50_000):
            resolved = resolve_open(
                small.job(epochs=None, head=None), task="ner" if ner else "classification", rows=rows, longest_input=300
            )
            assert resolved.epochs == defaults.epochs_for(rows, ner=ner)
            assert resolved.max_length == 300
            assert resolved.head == ("crf" if ner else None)


def test_money_counts_setting_up() -> None:
    offer = Offer(card="t4", place="here", price_per_hour=2, setup_seconds=1800)
    assert price_of(1800, offer) == pytest.approx(2.0)


def test_more_work_takes_longer(search: Search) -> None:
    template = search.template(Fit(precision="fp16"))
    small_pass, large_pass = pass_seconds(template, [(4, 256), (64, 512)], T4)
    assert large_pass > small_pass
    assert pass_seconds(template, [(64, 512)], card_of("h100"))[0] < large_pass
    assert 0 < LOW < 1
