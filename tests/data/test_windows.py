import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.data.coverage import coverage
from fitune.data.windows import SPECIAL, merge, split
from fitune.values import Example, Refusal, Span
from tests.data.small_encoders import HAN, HURTS, SMALL, texts

LONG = "".join(HAN[i % len(HAN)] + ("。" if i % 17 == 16 else "") for i in range(300))


@st.composite
def examples_with_spans(draw):
    """Texts, one of them long, and flat spans that begin and end at single-character tokens."""
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        text = "".join(draw(st.lists(st.sampled_from([*HAN, "。", "，"]), max_size=80)))
        position, spans = 0, []
        while position + 8 < len(text):
            start = position + draw(st.integers(0, 8))
            position = start + draw(st.integers(1, 8))
            if position <= len(text):
                spans.append(Span(start, position, draw(st.sampled_from("AB"))))
        rows.append(Example(text, tuple(spans)))
    return rows


def clipped(windows, examples):
    """What a perfect model finds in each window: gold, cut where the window is cut."""
    found = []
    for w, example in enumerate(windows.example.tolist()):
        left, right = int(windows.char_starts[w]), int(windows.char_ends[w])
        cut = [(max(s.start, left), min(s.end, right), s.label) for s in examples[example].spans]
        found.append([Span(a, b, label) for a, b, label in cut if a < b])
    return found


@given(examples=examples_with_spans(), max_length=st.integers(10, 40), overlap=st.one_of(st.none(), st.integers(2, 4)))
@settings(max_examples=150, deadline=None)
def test_merge_is_the_inverse_of_split(examples, max_length, overlap):
    """Entities of up to 8 characters, overlaps of 2 to 9 tokens: also those that are whole in no window."""
    windows = split(examples, SMALL["wordpiece"], max_length=max_length, overlap=overlap)
    assert merge(windows, clipped(windows, examples)) == [e.spans for e in examples]


@pytest.mark.parametrize("name", SMALL)
@given(rows=st.lists(texts, max_size=3), max_length=st.integers(8, 30))
@settings(max_examples=50, deadline=None)
def test_windows_hold_everything_once(name, rows, max_length):
    encoder = SMALL[name]
    examples = [Example(text) for text in [*rows, "".join(rows), LONG[:60]]]
    windows = split(examples, encoder, max_length=max_length)
    assert windows.lengths.max() <= max_length
    assert windows.example.tolist() == sorted(windows.example.tolist())
    assert (np.diff(windows.example_bounds) >= 1).all()
    whole = split(examples, encoder, max_length=None)
    for i in range(len(examples)):
        owned = [
            (w_token)
            for w in range(windows.example_bounds[i], windows.example_bounds[i + 1])
            for w_token in range(windows.bounds[w], windows.bounds[w + 1])
            if windows.owned[w_token]
        ]
        a, b = whole.bounds[i] + len(encoder.prefix), whole.bounds[i + 1] - len(encoder.suffix)
        if whole.example_bounds[i + 1] - whole.example_bounds[i] == 1 and whole.example_bounds[i] == i:
            np.testing.assert_array_equal(windows.ids[owned], whole.ids[a:b])
            np.testing.assert_array_equal(windows.starts[owned], whole.starts[a:b])
    found = coverage(windows, examples)
    assert found.share == 1.0
    assert found.characters == found.in_windows + found.dropped == sum(len(e.text) for e in examples)


def test_special_tokens_frame_every_window():
    encoder = SMALL["wordpiece"]
    windows = split([Example(LONG), Example(""), Example("我")], encoder, max_length=32)
    for w in range(len(windows)):
        row = slice(windows.bounds[w], windows.bounds[w + 1])
        assert windows.ids[row][0] == encoder.prefix[0]
        assert windows.ids[row][-1] == encoder.suffix[0]
        assert windows.starts[row][0] == windows.ends[row][-1] == SPECIAL
        assert (windows.starts[row][1:-1] >= 0).all()
    assert windows.lengths[-2:].tolist() == [2, 3]
    assert coverage(windows, [Example(LONG), Example(""), Example("我")]).share == 1.0


def test_cuts_fall_behind_a_sentence_where_one_ends_in_the_overlap():
    windows = split([Example(LONG)], SMALL["wordpiece"], max_length=82, overlap=40)
    ends = windows.char_ends[:-1].tolist()
    assert ends
    assert all(LONG[end - 1] == "。" for end in ends)
    overlaps = windows.char_ends[:-1] - windows.char_starts[1:]
    assert overlaps.min() >= 40


def test_no_window_cuts_a_character_of_a_byte_level_tokenizer():
    windows = split([Example(LONG + "".join(HURTS))], SMALL["bytes"], max_length=23)
    for w in range(1, len(windows)):
        first, before = windows.bounds[w] + 1, windows.bounds[w]
        assert windows.starts[first] == windows.char_starts[w]
        previous = range(windows.bounds[w - 1] + 1, before - 1)
        same = [t for t in previous if windows.starts[t] == windows.starts[first]]
        if same:  # the whole character stands in both windows
            count = sum(windows.starts[first : windows.bounds[w + 1] - 1] == windows.starts[first])
            assert len(same) == count


def test_an_entity_is_taken_from_the_window_where_it_lies_farthest_from_an_edge():
    windows = split([Example("我" * 60)], SMALL["wordpiece"], max_length=34, overlap=16)
    assert windows.char_starts.tolist() == [0, 16, 32]
    assert windows.char_ends.tolist() == [32, 48, 60]
    near_the_edge, inside = Span(28, 31, "A", 0.9), Span(28, 30, "A", 0.2)
    assert merge(windows, [[near_the_edge], [inside], []]) == [(inside,)]
    assert merge(windows, [[near_the_edge], [], []]) == [()]  # the window that answers found nothing
    # 4 characters from both edges: the earlier window answers.
    assert merge(windows, [[Span(20, 28, "A")], [Span(20, 28, "B")], []]) == [(Span(20, 28, "A"),)]
    long = [[Span(10, 32, "A", 0.5)], [Span(16, 48, "A", 0.7)], [Span(32, 50, "A", 0.1)]]
    assert merge(windows, long) == [(Span(10, 50, "A", 0.7),)]
    with pytest.raises(ValueError, match="2 lists"):
        merge(windows, [[], []])


@pytest.mark.parametrize(("first", "second"), [(5, 9), (5, 200), (200, 5), (150, 90), (90, 90), (0, 100), (100, 0)])
@pytest.mark.parametrize("name", SMALL)
def test_pairs_lose_nothing(name, first, second):
    encoder = SMALL[name]
    examples = [Example(LONG[:7]), Example(LONG[:first], text_pair=LONG[50 : 50 + second], labels=("x",))]
    windows = split(examples, encoder, max_length=48)
    assert windows.lengths.max() <= 48
    found = coverage(windows, examples)
    assert found.share == 1.0
    assert found.characters == found.in_windows
    for w in range(1, len(windows)):
        row = slice(windows.bounds[w], windows.bounds[w + 1])
        inside = windows.starts[row] != SPECIAL
        assert (~inside).sum() == len(encoder.prefix) + len(encoder.middle) + len(encoder.suffix)
        assert (np.diff(windows.segments[row]) >= 0).all()
        assert windows.segments[row][-1] == 1
        kept = windows.starts[row][(windows.segments[row] == 0) & inside]
        if name == "wordpiece" and first < min(second, 20):  # the short text stands whole in every window
            assert len(kept) == first


def test_windows_that_make_no_sense_are_refused():
    for options in ({"max_length": 513}, {"max_length": 5}, {"max_length": 32, "overlap": 16}, {"overlap": -1}):
        with pytest.raises(Refusal) as refused:
            split([Example("我")], SMALL["wordpiece"], **options)
        assert refused.value.code == "FT202"


def test_no_examples_no_windows():
    windows = split([], SMALL["wordpiece"])
    assert len(windows) == 0
    assert merge(windows, []) == []
    assert coverage(windows, []).share == 1.0
