import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB1, IOB2, IOBES, Entities

from fitune.data import schemes
from fitune.data.schemes import decode_tags, detect_scheme, flatten, invalid_transitions, spans_to_tags, tags_to_spans
from fitune.values import Span


@st.composite
def flat_spans(draw):
    """Spans that do not overlap, touching ones of one label included, and the length they live in."""
    position, spans = 0, []
    for _ in range(draw(st.integers(0, 6))):
        start = position + draw(st.integers(0, 2))
        position = start + draw(st.integers(1, 4))
        spans.append(Span(start, position, draw(st.sampled_from(["PER", "ORG.NAM", "a-b_c"]))))
    return tuple(spans), position + draw(st.integers(0, 2))


def any_tags(letters):
    tag = st.one_of(st.just("O"), st.builds("{}-{}".format, st.sampled_from(letters), st.sampled_from(["X", "Y"])))
    return st.lists(tag, max_size=12)


def seqeval_strict(tags, scheme):
    return [(e.start, e.end, e.tag) for e in Entities([tags], scheme).entities[0]]


def as_tuples(spans):
    return [(s.start, s.end, s.label) for s in spans]


@pytest.mark.parametrize("scheme", schemes.SCHEMES)
@given(given_spans=flat_spans(), separator=st.sampled_from("-_"))
def test_spans_to_tags_to_spans_is_the_identity(scheme, given_spans, separator):
    spans, length = given_spans
    tags = spans_to_tags(spans, length, scheme, separator=separator)
    assert len(tags) == length
    for strict in (False, True):
        assert decode_tags(tags, scheme, strict=strict) == (spans, ())


@given(any_tags("BI"))
def test_strict_bio_equals_seqeval_strict(tags):
    assert as_tuples(tags_to_spans(tags, "BIO", strict=True)) == seqeval_strict(tags, IOB2)


@given(any_tags("BIES"))
def test_strict_bioes_equals_seqeval_strict(tags):
    assert as_tuples(tags_to_spans(tags, "BIOES", strict=True)) == seqeval_strict(tags, IOBES)


@given(flat_spans())
def test_iob1_equals_seqeval_on_well_formed_tags(given_spans):
    spans, length = given_spans
    tags = spans_to_tags(spans, length, "IOB1")
    assert as_tuples(tags_to_spans(tags, "IOB1")) == seqeval_strict(tags, IOB1)


@given(any_tags("BIES"))
def test_lenient_equals_conlleval(tags):
    """seqeval's default mode is a port of conlleval; its ends are inclusive."""
    theirs = sorted((start, end + 1, label) for label, start, end in get_entities(tags))
    assert as_tuples(tags_to_spans(tags, "BIOES")) == theirs


@pytest.mark.parametrize("scheme", schemes.SCHEMES)
@given(tags=any_tags("BIES"))
def test_invalid_positions_are_empty_exactly_when_the_tags_can_be_written_again(scheme, tags):
    letters = dict(zip("BIES", schemes._LETTERS[scheme], strict=True))
    tags = ["O" if t == "O" or not letters[t[0]] else letters[t[0]] + t[1:] for t in tags]
    spans, invalid = decode_tags(tags, scheme)
    assert (spans_to_tags(spans, len(tags), scheme) == tags) == (not invalid)


def test_invalid_transitions_name_their_positions():
    assert invalid_transitions(["O", "M-ORG", "E-ORG", "B-X"], "BMES") == (1, 4)
    assert decode_tags(["O", "M-ORG", "E-ORG"], "BMES").spans == (Span(1, 3, "ORG"),)
    assert decode_tags(["O", "M-ORG", "E-ORG"], "BMES", strict=True).spans == ()
    with pytest.raises(ValueError, match="'NN' at position 1"):
        decode_tags(["O", "NN"], "BIO")


def test_spans_to_tags_refuses_what_it_cannot_write():
    with pytest.raises(ValueError, match="overlaps"):
        spans_to_tags([Span(0, 3, "A"), Span(2, 4, "B")], 5, "BIO")
    with pytest.raises(ValueError, match="ends after"):
        spans_to_tags([Span(3, 6, "A")], 5, "BIO")


@pytest.mark.parametrize(
    ("tags", "scheme", "invalid"),
    [
        (["B-X", "I-X", "O"], "BIO", 0),
        (["I-X", "I-X", "B-X", "O", "I-Y"], "IOB1", 0),
        (["B-X", "I-X", "O", "B-Y", "O", "I-Y"], "BIO", 1),
        (["B_X", "M_X", "E_X", "S_Y"], "BMES", 0),
        (["O", "M-X", "E-X", "B-X"], "BMES", 2),
        (["B-X", "I-X", "E-X"], "BIOES", 0),
        (["B-X", "E-X", "S-X"], "BIOES", 0),
        (["B-X", "L-X", "U-X"], "BILOU", 0),
        (["B-X", "E-X", "W-X"], "BMEW", 0),
    ],
)
def test_detect_scheme(tags, scheme, invalid):
    found = detect_scheme([tags, ["O"]])
    assert (found.scheme, found.invalid, found.separator) == (scheme, invalid, tags[0][1] if tags[0] != "O" else "-")


def test_detect_scheme_says_nothing_when_there_is_nothing():
    assert detect_scheme([]) is None
    assert detect_scheme([["O", "O"]]) is None
    assert detect_scheme([["B-X", "nn"]]) is None


def test_flatten_keeps_the_outer_span():
    inner, outer, crossing, apart = Span(2, 4, "A"), Span(1, 6, "B"), Span(5, 8, "C"), Span(9, 10, "D")
    kept, dropped = flatten([inner, apart, outer, crossing, outer])
    assert kept == (outer, apart)
    assert dropped == (inner, crossing)
    assert flatten([apart, inner]) == ((inner, apart), ())


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4), st.sampled_from("AB")), max_size=8))
def test_flatten_loses_nothing_and_never_overlaps(raw):
    spans = [Span(start, start + length, label) for start, length, label in raw]
    kept, dropped = flatten(spans)
    assert set(kept) | set(dropped) == set(spans)
    assert len(kept) + len(dropped) == len(set(spans))
    spans_to_tags(kept, 20, "BIO")
