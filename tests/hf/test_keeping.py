"""Tokens kept on disk are those that the tokenizer gives, for exactly these texts and this tokenizer."""

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from fitune.data import FastEncoder
from fitune.hf import keep_tokens, keeping


def encoder(words="一二三四五六七", translation=None):
    vocabulary = {word: number for number, word in enumerate(["[UNK]", *words])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return FastEncoder(backend, (1,), (2,), (2,), pad_id=0, unk_id=0, translation=translation)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FITUNE_CACHE", str(tmp_path))
    monkeypatch.setattr(keeping, "WORTH_KEEPING", 10)
    return tmp_path / "tokens"


class Counted:
    """Counts what reaches the tokenizer."""

    def __init__(self, backend):
        self.backend, self.texts = backend, 0

    def encode_batch(self, texts, **options):
        self.texts += len(texts)
        return self.backend.encode_batch(texts, **options)

    def __getattr__(self, name):
        return getattr(self.backend, name)


def kept(**options):
    inner = encoder(**options)
    counted = Counted(inner.backend)
    object.__setattr__(inner, "backend", counted)
    return keep_tokens(inner), counted


TEXTS = ["一二三四五", "五四\ud800三九", "", "六七六七六七"]


def same(a, b):
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("ids", "starts", "ends", "bounds"))


def test_a_second_start_tokenises_nothing_and_gets_the_same(folder):
    first = kept()[0].encode(TEXTS)
    again, counted = kept()
    assert same(first, encoder().encode(TEXTS))
    assert same(first, again.encode(TEXTS))
    assert counted.texts == 0
    assert (again.prefix, again.max_length, again.pieces([1])) == ((1,), 512, ["一"])


@pytest.mark.parametrize(
    "change",
    [
        {"texts": ["一二三四五五", "四\ud800三九", "", "六七六七六七"]},  # the same characters, other rows
        {"words": "七六五四三二一"},
        {"translation": {ord("一"): "二"}},
    ],
)
def test_what_changed_is_tokenised_again(folder, change):
    kept()[0].encode(TEXTS)
    texts = change.pop("texts", TEXTS)
    found, counted = kept(**change)
    assert same(found.encode(texts), encoder(**change).encode(texts))
    assert counted.texts == len(texts)


def test_small_calls_keep_nothing_and_half_a_file_is_made_again(folder):
    kept()[0].encode(["一二三"])
    assert not folder.exists()
    first = kept()[0].encode(TEXTS)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    assert same(first, kept()[0].encode(TEXTS))
    assert file.stat().st_size > 100


def test_the_oldest_go_when_there_are_too_many(folder, monkeypatch):
    monkeypatch.setattr(keeping, "MOST_BYTES", 4000)
    for number in range(8):
        kept()[0].encode([*TEXTS, "七" * number])
    left = list(folder.iterdir())
    assert 0 < sum(file.stat().st_size for file in left) <= 4000
    _again, counted = kept()
    _again.encode([*TEXTS, "七" * 7])
    assert counted.texts == 0
