from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.data.division import label_counts, split_dev, text_key
from fitune.values import Example, Refusal, Source, Span

rows = st.lists(
    st.builds(
        Example,
        text=st.integers(0, 30).map(lambda n: f"文本{n}"),
        labels=st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True).map(tuple),
        text_pair=st.sampled_from([None, "一", "二"]),
    ),
    min_size=2,
    max_size=60,
)


@given(rows, st.floats(0.05, 0.95), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_no_text_on_both_sides_and_no_row_lost(examples, fraction, seed):
    if len({text_key(e) for e in examples}) < 2:
        with pytest.raises(Refusal):
            split_dev(examples, fraction, seed)
        return
    train, dev = split_dev(examples, fraction, seed)
    assert train
    assert dev
    assert {text_key(e) for e in train}.isdisjoint(text_key(e) for e in dev)
    assert Counter(map(id, train + dev)) == Counter(map(id, examples))
    assert (train, dev) == split_dev(examples, fraction, seed)
    assert [id(e) for e in examples if any(e is d for d in dev)] == [id(e) for e in dev]


def test_every_class_gets_its_share():
    examples = [Example(f"正{n}", labels=("1",)) for n in range(400)] + [
        Example(f"反{n}", labels=("0",)) for n in range(800)
    ]
    train, dev = split_dev(examples, 0.1, 42)
    assert label_counts(dev) == {"1": 40, "0": 80}
    assert label_counts(train) == {"1": 360, "0": 720}
    assert {e.text for e in split_dev(examples, 0.1, 43)[1]} != {e.text for e in dev}


def test_the_draw_is_the_same_on_every_machine():
    examples = [Example(f"第{n}句", labels=(str(n % 2),)) for n in range(20)]
    assert [e.text for e in split_dev(examples, 0.2, 42)[1]] == ["第2句", "第7句", "第8句", "第15句"]


def test_entities_are_spread_by_the_labels_that_occur():
    examples = [Example(f"{n:03}甲", (Span(3, 4, "PER"),)) for n in range(50)] + [
        Example(f"{n:03}乙", ()) for n in range(150)
    ]
    _train, dev = split_dev(examples, 0.1, 1)
    assert len(dev) == 20
    assert sum(bool(e.spans) for e in dev) == 5


@pytest.mark.parametrize("count", [2, 3, 4, 9])
def test_tiny_files(count):
    train, dev = split_dev([Example(f"文{n}", labels=("x",)) for n in range(count)], 0.1, 42)
    assert len(dev) == 1
    assert len(train) == count - 1


def test_a_class_that_occurs_once_stays_in_train():
    examples = [Example(f"文{n}", labels=("often",)) for n in range(10)] + [Example("单", labels=("once",))]
    for seed in range(10):
        assert "once" in label_counts(split_dev(examples, 0.2, seed)[0])


def test_one_text_cannot_be_split():
    with pytest.raises(Refusal) as refused:
        split_dev([Example("同", labels=("a",)), Example(" 同\ufeff", labels=("b",))], 0.5, 1)
    assert refused.value.code == "FT120"


def test_what_cannot_be_split_names_its_file():
    rows = [Example("一样", labels=("A",), source=Source("a.csv", 2)), Example("一样", source=Source("a.csv", 3))]
    for count in (1, 2):
        with pytest.raises(Refusal) as refusal:
            split_dev(rows[:count], 0.1, 1)
        assert (refusal.value.code, refusal.value.where) == ("FT120", "a.csv")
        assert ("one row alone" in refusal.value.found) == (count == 1)
