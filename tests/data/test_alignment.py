from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fitune.data.alignment import align, drop_reason, like_runs
from fitune.data.encoder import Encoded, FastEncoder
from fitune.values import Refusal
from tests.data.small_encoders import HURTS, SMALL, bert_base_chinese, texts, word_piece, word_piece_vocabulary


def tokens_of(encoded, row=0):
    a, b = encoded.bounds[row], encoded.bounds[row + 1]
    return list(zip(encoded.starts[a:b].tolist(), encoded.ends[a:b].tolist(), strict=True))


@pytest.mark.parametrize("name", SMALL)
@given(rows=st.lists(texts, max_size=4))
@example(rows=HURTS)
@example(rows=["", " ", ""])
@settings(max_examples=60, deadline=None)
def test_every_character_is_inside_a_token_or_listed_as_dropped(name, rows):
    aligned = align(rows, SMALL[name])
    dropped = set(zip(aligned.dropped_text.tolist(), aligned.dropped_position.tolist(), strict=True))
    for row, text in enumerate(rows):
        inside = {c for start, end in tokens_of(aligned.encoded, row) for c in range(start, end)}
        listed = {position for r, position in dropped if r == row}
        assert inside | listed == set(range(len(text)))
        assert not inside & listed
    assert aligned.characters == sum(map(len, rows))


def test_the_real_vocabulary_drops_only_blank_control_and_marks():
    for lowercase in (True, False):
        aligned = align(HURTS, bert_base_chinese(lowercase=lowercase))
        reasons = {
            drop_reason(HURTS[row][position])
            for row, position in zip(aligned.dropped_text.tolist(), aligned.dropped_position.tolist(), strict=True)
        }
        assert reasons <= {"whitespace", "control", "mark"}


def test_batches_equal_one_text_at_a_time():
    rows = HURTS * 3
    for encoder in SMALL.values():
        together = align(rows, encoder).encoded
        alone = Encoded.concatenate([align([row], encoder).encoded for row in rows])
        for column in ("ids", "starts", "ends", "bounds"):
            np.testing.assert_array_equal(getattr(together, column), getattr(alone, column))


def test_an_emoji_run_does_not_swallow_its_neighbour():
    encoder = SMALL["wordpiece"]
    text = "我喝😀😀iphone😀"
    plain = align([text], encoder, refine=False).encoded
    assert (2, 11) in tokens_of(plain)  # one [UNK] for the emoji and the name
    fine = align([text], encoder)
    assert tokens_of(fine.encoded) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 10), (10, 11)]
    assert fine.refined == 1
    assert encoder.pieces(fine.encoded.ids.tolist())[4] == "iphone"


def test_marks_joiners_and_skin_tones_stay_with_their_character():
    for text, parts in {
        "👨‍👩‍👧家": ["👨‍👩‍👧", "家"],
        "👍🏽👍": ["👍🏽", "👍"],
        "e\u0301a1": ["e\u0301a", "1"],
        "ＡB９9": ["ＡB", "９9"],
        "": [""],
        "x" * 120: ["x" * 50, "x" * 50, "x" * 20],
    }.items():
        assert [text[a:b] for a, b in pairwise(like_runs(text))] == parts


def test_lower_casing_that_changes_the_length_keeps_offsets():
    aligned = align(["İstanbul茶"], SMALL["wordpiece"])
    assert tokens_of(aligned.encoded)[-1] == (8, 9)
    assert tokens_of(aligned.encoded)[0][0] == 0


def test_spaces_are_taken_off_the_edges_of_sentencepiece_tokens():
    aligned = align(["喝 iphone 茶"], SMALL["unigram"])
    assert (2, 8) in tokens_of(aligned.encoded)
    assert aligned.dropped_position.tolist() in ([1], [8], [1, 8])


def test_lone_surrogates_do_not_stop_the_tokenizer():
    aligned = align(["我\ud83d们"], SMALL["wordpiece"])
    assert tokens_of(aligned.encoded)[-1] == (2, 3)


@pytest.mark.parametrize("offsets", [[(0, 1), (1, 9)], [(1, 2), (0, 1)], [(0, 1), (-1, 2)], [(0, 1), (2, 1)]])
def test_wrong_offsets_are_refused(offsets):
    class Wrong:
        prefix = middle = suffix = ()
        pad_id, unk_id, max_length, uses_segments = 0, None, 512, False

        def encode(self, rows):
            return Encoded.from_lists([[5, 6] for _row in rows], [offsets for _row in rows])

        def pieces(self, ids):
            return [""] * len(ids)

    with pytest.raises(Refusal) as refused:
        align(["我们"], Wrong())
    assert refused.value.code == "FT201"


def test_maps_must_keep_the_length():
    with pytest.raises(ValueError, match=r"U\+2026"):
        word_piece(word_piece_vocabulary(), translation={0x2026: "..."})
    assert isinstance(word_piece(word_piece_vocabulary(), translation={0x201C: '"'}), FastEncoder)
