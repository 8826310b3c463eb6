"""Real tokenizers with small vocabularies of our own, and texts that hurt."""

import os
from pathlib import Path

import pytest
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.pre_tokenizers import ByteLevel

from fitune.data.encoder import FastEncoder

HAN = "我们在北京上海喝茶的人叫李雷和韩梅子今天很好"
_LATIN = [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("0123456789")
_PUNCTUATION = list("。，！？、；：（）《》.,!?;:()'\"-")


def word_piece_vocabulary(*, capitals: bool = False) -> list[str]:
    letters = _LATIN + ([c.upper() for c in _LATIN if c.isalpha()] if capitals else [])
    words = ["beijing", "##jing", "iphone", "##pro", "2024", "##24"]
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return list(dict.fromkeys([*specials, *HAN, *_PUNCTUATION, *letters, *["##" + c for c in letters], *words]))


def word_piece(vocabulary: list[str], *, lowercase: bool = True, max_length: int = 512, **more) -> FastEncoder:
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    backend = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cls, sep = ids["[CLS]"], ids["[SEP]"]
    return FastEncoder(backend, (cls,), (sep,), (sep,), ids["[PAD]"], ids["[UNK]"], max_length, **more)


def byte_level(max_length: int = 512) -> FastEncoder:
    """Every byte a token: several tokens stand for one character."""
    alphabet = sorted(ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({c: n + 4 for n, c in enumerate(alphabet)}, []))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return FastEncoder(backend, (0,), (2, 2), (2,), 1, None, max_length, False, spell=lambda token: "")


def sentence_piece(max_length: int = 512) -> FastEncoder:
    """Unigram with word marks; spaces go into the word that follows."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *HAN, *_PUNCTUATION, *_LATIN, "▁bei", "jing", "▁iphone", "今天"]
    scores = [(piece, -float(number) / 10) for number, piece in enumerate(dict.fromkeys(pieces))]
    backend = Tokenizer(models.Unigram(scores, unk_id=3))
    backend.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    return FastEncoder(backend, (0,), (2, 2), (2,), 1, 3, max_length, False)


def word_piece_with_marks() -> FastEncoder:
    """Combining marks are pieces of their own, as in cased vocabularies of many scripts."""
    return word_piece([*word_piece_vocabulary(), "##\u0301", "##\u05b0", "א", "\u0301"], lowercase=False)


SMALL = {
    "wordpiece": word_piece(word_piece_vocabulary()),
    "wordpiece-cased": word_piece(word_piece_vocabulary(capitals=True), lowercase=False),
    "wordpiece-marks": word_piece_with_marks(),
    "bytes": byte_level(),
    "unigram": sentence_piece(),
}


def data_folder() -> Path:
    """Where public data lies on this machine; the test is skipped without it."""
    folder = os.environ.get("FITUNE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("FITUNE_DATA names no folder of public data")
    return Path(folder)


def bert_base_chinese(*, lowercase: bool = True) -> FastEncoder:
    path = data_folder() / "bert_base_chinese_vocab" / "vocab.txt"
    return word_piece(path.read_text(encoding="utf-8").splitlines(), lowercase=lowercase)


HURTS = [
    "😀😀iPhone😀",
    "👨‍👩‍👧‍👦家",
    "👍🏽❤️",
    "e\u0301te\u0301",
    "零\u200b宽\u200d字\ufeff",
    "𠮷野家𝔘𝔫𝔦",
    "ＡＢＣ１２３",
    "İstanbul",
    "ﬁnal ß ΑΣ",
    " \t\u3000\xa0\n",
    "한국어カタカナひらがな",
    "\x00\x07\ufffd",
    "“引号”—…",
    "CIN Ⅱ-Ⅲ ①",
    "א\u05b0עברית",
    "กำลัง",
    "\ue000\U000f0000",
    "a" * 120,
]

_characters = st.characters(exclude_categories=["Cs"])
texts = st.lists(
    st.one_of(
        st.sampled_from(HURTS),
        st.sampled_from(list(HAN)),
        st.sampled_from(["。", "，", " ", "2024", "iPhone Pro", "BeiJing"]),
        st.text(_characters, max_size=3),
    ),
    max_size=12,
).map("".join)
