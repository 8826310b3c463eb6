"""Which pieces of the embedded encoder's vocabulary are kept, and the tokenizer that goes with them.

Its 250,002 unigram pieces are pruned to what Chinese text needs, in one of two ways:

``characters``, for entities: one token per character (digits too: an entity may end inside a number); words of Latin
letters are split greedily into their most frequent pieces, with case kept.

``words``, for text classes: the pieces that the encoder was trained on, split by their likelihoods (unigram, Kudo
2018, arXiv:1804.10959). It knows 天气 better than 天 and 气, and a text has fewer tokens.

Full-width forms are folded by NFKC; offsets stay those of the original text.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fitune.hf.embedded_file import Floats

__all__ = ["choose_characters", "choose_words", "write_character_tokenizer", "write_word_tokenizer"]

LATIN_PIECES = {"characters": 16_000, "words": 8_000}
"""How many pieces of two or more Latin letters are kept, most frequent first."""
SPACE = "\u2581"  # SentencePiece's mark for a space before the piece
SPECIAL = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
ELLIPSIS = "\u22ef"  # stands for "…", which NFKC would take apart into three tokens
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f]+")


def choose_characters(pieces: list[str], scores: Floats) -> dict[str, int]:
    """Token -> row of the original embeddings, in the order of the new ids.

    A word's first piece takes the row of the piece with a space before it, a later piece the row of the one without;
    where the other form is all there is, that one.
    """
    row_of = {piece: row for row, piece in reversed(list(enumerate(pieces)))}
    chosen = {token: row_of[original] for token, original in SPECIAL.items()}
    singles = [p for p in pieces if len(p) == 1 and p.isprintable() and p not in (SPACE, " ")]
    for piece in singles:
        chosen[piece] = row_of.get(SPACE + piece, row_of[piece]) if _is_latin(piece) else row_of[piece]
    for letter in filter(_is_latin, singles):
        chosen["##" + letter] = row_of[letter]
    chosen[ELLIPSIS] = row_of["..."]
    longer = [p for p in pieces if len(p.removeprefix(SPACE)) > 1 and _is_latin(p.removeprefix(SPACE))]
    longer.sort(key=lambda piece: -scores[row_of[piece]])
    for piece in longer[: LATIN_PIECES["characters"]]:
        letters = piece.removeprefix(SPACE)
        chosen.setdefault(letters if piece != letters else "##" + letters, row_of[piece])
    for piece in longer[: LATIN_PIECES["characters"]]:
        chosen.setdefault(piece.removeprefix(SPACE), row_of[piece])
    return chosen


def write_character_tokenizer(vocabulary: dict[str, int], folder: Path, max_length: int) -> None:
    """tokenizer.json, its configuration and vocab.txt."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {token: index for index, token in enumerate(vocabulary)}
    word_piece: Any = models.WordPiece
    tokenizer = Tokenizer(word_piece(vocab=ids, unk_token="[UNK]", max_input_chars_per_word=200))
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace("…", ELLIPSIS),
            normalizers.NFKC(),
            normalizers.BertNormalizer(
                clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
            ),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex("[^A-Za-z]"), "isolated")]
    )
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    _save(tokenizer, folder, max_length)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in ids), encoding="utf-8")


def choose_words(pieces: list[str], scores: Floats) -> dict[str, int]:
    """Token -> row of the original embeddings, in the order of the new ids: pieces as they are, fewer of them.

    Kept: every piece of one character, of Han characters, of ASCII that is not all letters, and the most frequent of
    Latin letters.
    """
    row_of = {piece: row for row, piece in reversed(list(enumerate(pieces)))}
    longer = {p for p in row_of if len(p.removeprefix(SPACE)) > 1 and _is_latin(p.removeprefix(SPACE))}
    frequent = set(sorted(longer, key=lambda piece: (-scores[row_of[piece]], piece))[: LATIN_PIECES["words"]])
    special = set(SPECIAL.values())
    chosen = {token: row_of[original] for token, original in SPECIAL.items()}
    for piece, row in sorted(row_of.items(), key=lambda entry: entry[1]):
        body = piece.removeprefix(SPACE)
        short = len(body) <= 1 and piece.isprintable()
        if piece not in special and (short or piece in frequent or _HAN.fullmatch(body) or _is_other_ascii(body)):
            chosen[piece] = row
    return chosen


def write_word_tokenizer(vocabulary: dict[str, int], scores: Floats, folder: Path, max_length: int) -> None:
    """tokenizer.json and its configuration. ``scores``: log-likelihoods of the original rows."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids = {token: index for index, token in enumerate(vocabulary)}
    likelihoods = [(token, 0.0 if token in SPECIAL else float(scores[row])) for token, row in vocabulary.items()]
    unigram: Any = models.Unigram
    tokenizer = Tokenizer(unigram(likelihoods, unk_id=ids["[UNK]"], byte_fallback=False))
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.BertNormalizer(
                clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
            ),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always")
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    _save(tokenizer, folder, max_length)


def _is_latin(text: str) -> bool:
    return text.isascii() and text.isalpha()


def _is_other_ascii(text: str) -> bool:
    return text.isascii() and text.isprintable() and not text.isalpha()


def _save(tokenizer: Any, folder: Path, max_length: int) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **dict(zip(names, SPECIAL, strict=True)),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration, indent=2), encoding="utf-8")
