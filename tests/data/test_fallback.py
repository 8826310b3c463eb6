import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitune.data.encoder import Encoded, FastEncoder
from fitune.data.fallback import SlowEncoder, locate_pieces, probe
from fitune.data.normalization import lacks_capitals, lowercase_map, quote_map
from fitune.values import Refusal
from tests.data.small_encoders import HAN, HURTS, SMALL, bert_base_chinese, word_piece_vocabulary


def slow(encoder: FastEncoder) -> SlowEncoder:
    """The same tokenizer without its offsets."""
    return SlowEncoder(
        lambda text: encoder.backend.encode(text, add_special_tokens=False).tokens,
        lambda pieces: [encoder.backend.token_to_id(piece) for piece in pieces],
        lambda ids: [encoder.backend.id_to_token(i) for i in ids],
        encoder.prefix,
        encoder.middle,
        encoder.suffix,
        encoder.pad_id,
        encoder.unk_id,
    )


plain = st.lists(
    st.sampled_from([*HAN, "iphone", "Beijing", " ", "2024", "，", "é", "Ｂ", "龘", "😀", "x龘"]), max_size=20
)


@pytest.mark.parametrize("name", ["wordpiece", "wordpiece-cased"])
@given(parts=plain)
@settings(max_examples=150, deadline=None)
def test_the_fallback_finds_what_the_fast_tokenizer_says(name, parts):
    text = "".join(parts)
    fast, found = SMALL[name].encode([text]), slow(SMALL[name]).encode([text])
    np.testing.assert_array_equal(found.ids, fast.ids)
    np.testing.assert_array_equal(found.starts, fast.starts)
    np.testing.assert_array_equal(found.ends, fast.ends)


def test_the_fallback_on_the_real_vocabulary():
    encoder = bert_base_chinese()
    fast, found = encoder.encode(HURTS), slow(encoder).encode(HURTS)
    same = (found.starts == fast.starts) & (found.ends == fast.ends)
    assert same.mean() > 0.95


def test_a_piece_that_is_not_there_gets_an_empty_range():
    assert locate_pieces("喝茶", ["喝", "水", "茶"]) == [(0, 1), (1, 1), (1, 2)]
    assert locate_pieces("", ["喝", None]) == [(0, 0), (0, 0)]


@pytest.mark.parametrize("name", SMALL)
def test_real_tokenizers_pass_the_probe(name):
    probe(SMALL[name])
    if name.startswith("wordpiece"):
        probe(slow(SMALL[name]))


def test_the_real_vocabulary_passes_the_probe():
    probe(bert_base_chinese())
    probe(bert_base_chinese(lowercase=False))


def test_shifted_offsets_are_refused():
    encoder = SMALL["wordpiece"]

    class Shifted(SlowEncoder):
        def encode(self, texts):
            right = encoder.encode(texts)
            return Encoded(right.ids, np.maximum(right.starts - 1, 0), np.maximum(right.ends - 1, 0), right.bounds)

    shifted = Shifted(**{name: getattr(slow(encoder), name) for name in SlowEncoder.__dataclass_fields__})
    with pytest.raises(Refusal) as refused:
        probe(shifted, name="shifty")
    assert refused.value.code == "FT203"
    assert "shifty" in str(refused.value)


def test_quotes_become_what_the_vocabulary_has():
    vocabulary = set(word_piece_vocabulary())
    text = "“引号”—…İ"
    assert text.translate(quote_map(vocabulary)) == '"引号"-.İ'
    assert quote_map({*vocabulary, *"“”—…"}).keys().isdisjoint(map(ord, "“”—…"))


@given(st.text())
def test_lower_casing_keeps_the_length(text):
    lowered = text.translate(lowercase_map())
    assert len(lowered) == len(text)
    for before, after in zip(text, lowered, strict=True):
        assert after == before.lower()[0]


def test_vocabularies_without_capitals_are_noticed():
    assert lacks_capitals(["[CLS]", "<S>", "a", "中"])
    assert not lacks_capitals(["[CLS]", "##A"])
    assert lacks_capitals(word_piece_vocabulary())
    assert not lacks_capitals(word_piece_vocabulary(capitals=True))
