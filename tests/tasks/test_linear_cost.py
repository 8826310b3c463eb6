"""Cost grows as the rows do: 1, 2 and 4 times the rows cost 1, 2 and 4 times the function calls."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForTokenClassification

from fitune.data import FastEncoder, check, read
from fitune.tasks import Learner, NerTask, score

CHARACTERS = "天地人你我他好坏大小上下来去吃喝看听说走"
TASK = NerTask(("name", "place"), "softmax", 32)
ROWS = 150


def write(path: Path, rows: int) -> Path:
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        for _row in range(rows):
            text = "".join(draw.choices(CHARACTERS, k=draw.randrange(8, 60)))
            file.write(f'{{"text": "{text}", "entities": [[1, 3, "name"], [4, 6, "place"]]}}\n')
    return path


@pytest.fixture(scope="module")
def encoder() -> FastEncoder:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *CHARACTERS])}
    backend = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return FastEncoder(backend, prefix=(2,), middle=(3,), suffix=(3,), pad_id=0, unk_id=1, max_length=32)


@pytest.fixture(scope="module")
def learner() -> Learner:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=40,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        max_position_embeddings=32,
        num_labels=5,
    )
    return Learner(BertForTokenClassification(config)).eval()


def calls_of(work: Callable[[], Any]) -> int:
    """Python and C function calls of ``work``: a clock that no neighbour disturbs."""
    count = 0

    def seen(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("part", ["read", "check", "tokenise", "predict"])
def test_cost_grows_with_the_rows(part: str, encoder: FastEncoder, learner: Learner, tmp_path: Path) -> None:
    counts: list[int] = []
    for times in (1, 1, 2, 4):  # the first round only fills what is made once
        file = write(tmp_path / f"{times}.jsonl", ROWS * times)
        rows = read(file)
        data = TASK.encode(rows.examples, encoder)
        work: dict[str, Callable[[], Any]] = {
            "read": lambda file=file: read(file),
            "check": lambda rows=rows: check({"train": rows}, encoder, max_length=32),
            "tokenise": lambda rows=rows: TASK.encode(rows.examples, encoder),
            "predict": lambda data=data: score(TASK, learner, data),
        }
        counts.append(calls_of(work[part]))
    _first, once, twice, four = counts
    assert once > 0
    # Twice the rows: at most a tenth more than twice the calls, on both doublings.
    assert twice <= 2.2 * once
    assert four <= 2.2 * twice
