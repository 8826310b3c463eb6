"""A tiny encoder with random weights, and small files that say something learnable."""

import json
import random
from pathlib import Path

import pytest

CHARACTERS = "张王李赵北京上海广州在去了来喝茶天气很好坏不的是我他她有和今明日，。"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT folder: 2 layers of 32, one token a character."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("tiny")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(CHARACTERS)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    torch.manual_seed(0)
    BertModel(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
        )
    ).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def entity_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """JSONL with spans: two-character names and places in short sentences."""
    rng = random.Random(0)
    lines: list[str] = []
    for _row in range(96):
        name, place = rng.choice("张王李赵") + rng.choice("天明日"), rng.choice(["北京", "上海", "广州"])
        head = "".join(rng.choice("今的是我，") for _c in range(rng.randrange(4)))
        text = f"{head}{name}在{place}喝茶。"
        at = len(head)
        spans = [[at, at + 2, "人"], [at + 3, at + 5, "地"]]
        lines.append(json.dumps({"text": text, "entities": spans}, ensure_ascii=False))
    path = tmp_path_factory.mktemp("data") / "entities.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="session")
def class_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """CSV: good or bad, by one character."""
    rng = random.Random(1)
    rows = ["text,label"]
    for row in range(96):
        filler = "".join(rng.choice("今天气很我他她有和") for _c in range(rng.randrange(3, 10)))
        rows.append(f"{filler}{'好' if row % 2 else '坏'}{row % 7 * '的'},{'正面' if row % 2 else '负面'}")
    path: Path = tmp_path_factory.mktemp("data") / "reviews.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)
