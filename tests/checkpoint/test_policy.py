import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitune.checkpoint import Entry, Policy, forecast, superfluous

entries_lists = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 100), st.none() | st.floats(0, 1)), max_size=12
).map(lambda rows: [Entry(str(i), i + 1, step, size, score) for i, (step, size, score) in enumerate(rows)])


@given(
    entries_lists, st.integers(1, 3), st.integers(0, 2), st.none() | st.integers(1, 10), st.none() | st.integers(1, 300)
)
def test_the_newest_stays_and_the_limits_hold(entries, latest, best, every, most):
    policy = Policy(latest, best, every, most)
    gone = {entry.serial for entry in superfluous(entries, policy)}
    kept = [entry for entry in entries if entry.serial not in gone]
    if entries:
        assert entries[-1] in kept
    if most is None:
        assert set(entries[-latest:]) <= set(kept)
        if every:
            assert all(e in kept for e in entries if e.step % every == 0)
        else:
            assert len(kept) <= latest + best
        scored = [e for e in entries if e.score is not None]
        if scored and best:
            assert max(scored, key=lambda e: (e.score, -e.serial)) in kept
    else:
        assert len(kept) <= 1 or sum(e.nbytes for e in kept) <= most


def test_forecast():
    gigabyte = 10**9
    assert forecast(Policy(latest=1), gigabyte, 3 * gigabyte).finding is None
    tight = forecast(Policy(latest=2), 13 * gigabyte // 10, int(2.7 * gigabyte))
    assert tight.policy.latest == 1
    assert tight.finding.code == "FT606"
    assert "3.9 GB needed" in tight.finding.title
    assert "2.7 GB free: keeping 1" in tight.finding.title
    assert tight.states_fit
    hopeless = forecast(Policy(), gigabyte, gigabyte)
    assert not hopeless.states_fit
    assert "not even one state" in hopeless.finding.title
    # The best model is written beside the one that it replaces.
    assert forecast(Policy(latest=1), gigabyte, 3 * gigabyte, model_bytes=gigabyte // 2).finding is None
    assert not forecast(Policy(latest=1), gigabyte, 3 * gigabyte, model_bytes=gigabyte).states_fit
    every = forecast(Policy(latest=1, every_steps=10), gigabyte, 50 * gigabyte, steps_total=100)
    assert every.predicted_bytes == 12 * gigabyte


def test_a_policy_keeps_at_least_one():
    with pytest.raises(ValueError, match="newest"):
        Policy(latest=0)
