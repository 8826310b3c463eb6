import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fitune.data.projection import IGNORED, Expressed, characters, heads_of_words, project, targets
from fitune.data.schemes import SCHEMES, spans_to_tags, tags_to_spans
from fitune.data.windows import SPECIAL, merge, split
from fitune.values import Example, Span
from tests.data.small_encoders import HAN, SMALL, bert_base_chinese, texts

TAGS = ["O"] + [f"{letter}-{label}" for letter in "BIES" for label in "AB"]
TAG_IDS = {tag: number for number, tag in enumerate(TAGS)}


@st.composite
def labelled_texts(draw, source=texts):
    text = draw(source)
    position, spans = 0, []
    while position < len(text) and draw(st.booleans()):
        start = draw(st.integers(position, len(text) - 1))
        position = draw(st.integers(start + 1, min(len(text), start + 9)))
        spans.append(Span(start, position, draw(st.sampled_from("AB"))))
    return Example(text, tuple(spans))


def found_again(windows, examples, result, scheme, heads=None):
    """Targets -> spans of each window, by the way back."""
    found = []
    for w, row in enumerate(windows.example.tolist()):
        tokens = np.arange(windows.bounds[w], windows.bounds[w + 1])
        tokens = tokens[windows.starts[tokens] != SPECIAL]
        if heads is not None:
            tokens = tokens[heads[tokens]]
        tags = [TAGS[c] if c != IGNORED else "O" for c in result[tokens].tolist()]
        spans = []
        for span in tags_to_spans(tags, scheme):
            last = int(tokens[span.end - 1])
            if heads is not None:
                stop = int(windows.bounds[w + 1])
                while last + 1 < stop and not heads[last + 1]:
                    last += 1
            ends = characters(windows, examples[row].text, int(tokens[span.start]), last + 1)
            spans.append(Span(*ends, span.label))
        found.append(spans)
    return found


@pytest.mark.parametrize("name", SMALL)
@given(examples=st.lists(labelled_texts(), min_size=1, max_size=3), scheme=st.sampled_from(["BIO", "BIOES"]))
@settings(max_examples=60, deadline=None)
def test_project_and_back_is_the_identity_where_it_is_said_to_be(name, examples, scheme):
    windows = split(examples, SMALL[name])
    projected = project(windows, examples)
    result = targets(windows, examples, TAG_IDS, scheme=scheme, projected=projected)
    again = merge(windows, found_again(windows, examples, result, scheme))
    exact = [set() for _ in examples]
    for e, n, how in zip(projected.example, projected.number, projected.expressed, strict=True):
        span = examples[e].spans[n]
        if how == Expressed.EXACT:
            exact[e].add(span)
        else:
            assert span not in again[e] or how == Expressed.LOST
    for e, spans in enumerate(exact):
        assert spans <= set(again[e])
    if (projected.expressed == Expressed.EXACT).all():
        assert again == [e.spans for e in examples]


@given(
    examples=st.lists(labelled_texts(st.text(st.sampled_from(HAN + "。"), min_size=30, max_size=60)), max_size=2),
    max_length=st.integers(12, 40),
)
@example(examples=[Example("我" * 60, tuple(Span(a, a + 5, "AB"[a % 2]) for a in range(0, 60, 5)))], max_length=34)
@settings(max_examples=60, deadline=None)
def test_cut_into_windows_targets_say_the_same(examples, max_length):
    """Every token has one target in one window, and all entities come back."""
    windows = split(examples, SMALL["wordpiece"], max_length=max_length)
    result = targets(windows, examples, TAG_IDS)
    for e, row in enumerate(examples):
        w, past = windows.example_bounds[e], windows.example_bounds[e + 1]
        at = slice(windows.bounds[w], windows.bounds[past])
        labelled = np.flatnonzero(result[at] != IGNORED) + windows.bounds[w]
        order = labelled[np.argsort(windows.starts[labelled], kind="stable")]
        assert windows.starts[order].tolist() == list(range(len(row.text)))
        tags = [TAGS[c] for c in result[order].tolist()]
        assert tags == spans_to_tags(row.spans, len(row.text), "BIO")


def test_what_tokens_cannot_express_is_said():
    text = "我喝 iphone2024 茶e\u0301\u3000们"
    spans = [Span(0, 1, "A"), Span(1, 3, "A"), Span(3, 7, "B"), Span(14, 15, "A"), Span(15, 16, "B"), Span(17, 18, "A")]
    examples = [Example(text, tuple(spans))]
    windows = split(examples, SMALL["wordpiece"])
    found = project(windows, examples)
    E = Expressed
    assert found.expressed.tolist() == [E.EXACT, E.TRIMMED, E.CUT, E.EXACT, E.CUT, E.LOST]
    assert found.number.tolist() == list(range(6))
    assert found.first[-1] == found.last[-1]
    ends = [characters(windows, text, a, b) for a, b in zip(found.first[:5], found.last[:5], strict=True)]
    assert ends == [(0, 1), (1, 2), (3, 9), (14, 15), (15, 17)]


def test_first_pieces():
    encoder = SMALL["wordpiece"]
    continues = np.array([piece.startswith("##") for piece in encoder.backend.get_vocab()])
    vocabulary = encoder.backend.get_vocab()
    continues = np.zeros(len(vocabulary), bool)
    for piece, number in vocabulary.items():
        continues[number] = piece.startswith("##")
    text = "喝iphone24茶"
    examples = [Example(text, (Span(1, 9, "A"),)), Example(text, (Span(1, 7, "B"), Span(9, 10, "A")))]
    windows = split(examples, encoder)
    heads = heads_of_words(windows, continues)
    assert heads.tolist() == [True, True, True, False, True, True] * 2
    found = project(windows, examples, heads=heads)
    assert found.expressed.tolist() == [Expressed.EXACT, Expressed.CUT, Expressed.EXACT]
    result = targets(windows, examples, TAG_IDS, heads=heads)
    names = [TAGS[c] if c >= 0 else "-" for c in result.tolist()]
    assert names == ["-", "O", "B-A", "-", "O", "-", "-", "O", "B-B", "-", "B-A", "-"]
    again = merge(windows, found_again(windows, examples, result, "BIO", heads))
    assert again == [(Span(1, 9, "A"),), (Span(1, 9, "B"), Span(9, 10, "A"))]


@pytest.mark.parametrize("scheme", [s for s in SCHEMES if s in ("BIO", "BIOES")])
def test_an_entity_longer_than_every_window_is_labelled_in_parts(scheme):
    examples = [Example("我" * 100, (Span(20, 80, "A"),)), Example("我", None)]
    windows = split(examples, SMALL["wordpiece"], max_length=26, overlap=8)
    result = targets(windows, examples, TAG_IDS, scheme=scheme)
    names = [TAGS[c] for c in result.tolist() if c != IGNORED]
    assert len(names) == 100  # the unlabelled example has no target at all
    assert names.count("B-A") == 1
    assert names.index("B-A") == 20
    assert names == spans_to_tags([Span(20, 80, "A")], 100, scheme)


def test_overlapping_spans_are_refused():
    examples = [Example("我们在", (Span(0, 2, "A"), Span(1, 3, "B")))]
    with pytest.raises(ValueError, match="flatten"):
        project(split(examples, SMALL["wordpiece"]), examples)


def test_an_unknown_label_is_an_error():
    examples = [Example("我们在", (Span(0, 2, "Z"),))]
    with pytest.raises(KeyError):
        targets(split(examples, SMALL["wordpiece"]), examples, TAG_IDS)


@given(examples=st.lists(labelled_texts(), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_real_vocabulary(examples):
    windows = split(examples, bert_base_chinese(), max_length=20)
    projected = project(windows, examples)
    result = targets(windows, examples, TAG_IDS, projected=projected)
    again = merge(windows, found_again(windows, examples, result, "BIO"))
    if (projected.expressed == Expressed.EXACT).all() and projected.whole.all():
        assert again == [e.spans for e in examples]
