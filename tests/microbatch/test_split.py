from hypothesis import given
from hypothesis import strategies as st

from fitune.microbatch import Budget, split

lengths_lists = st.lists(st.integers(1, 512), min_size=1, max_size=60)


@given(lengths_lists, st.none() | st.integers(1, 4000), st.none() | st.integers(1, 20))
def test_every_window_once_within_the_budget_and_the_heaviest_first(lengths, tokens, windows):
    pieces = split(lengths, Budget(tokens, windows))
    assert sorted(i for piece in pieces for i in piece.indices) == list(range(len(lengths)))
    costs = [piece.padded_tokens for piece in pieces]
    assert costs == sorted(costs, reverse=True)
    for piece in pieces:
        assert piece.longest_tokens == max(lengths[i] for i in piece.indices)
        if len(piece.indices) > 1:
            assert tokens is None or piece.padded_tokens <= tokens
            assert windows is None or len(piece.indices) <= windows


@given(lengths_lists, st.integers(2, 4000))
def test_a_budget_below_the_heaviest_cost_changes_the_split(lengths, tokens):
    heaviest = split(lengths, Budget(tokens))[0]
    if len(heaviest.indices) > 1:
        smaller = split(lengths, Budget(heaviest.padded_tokens - 1))[0]
        assert smaller.padded_tokens < heaviest.padded_tokens


def test_no_limit_is_one_pass_and_equal_lengths_keep_their_order():
    (piece,) = split([3, 5, 3, 5], Budget())
    assert piece.indices == (1, 3, 0, 2)
    assert piece.padded_tokens == 20
    assert split([], Budget()) == []
