"""Made-up rows with given lengths, and models with random weights: what the speed scripts share.

Lengths come from a file (``--lengths``: JSON lines with "text", or lines whose last column is the text) or, without
one, from two made-up distributions: short sentences (mean 33.5 tokens with the special ones, at most 51) and reviews
with a tail to 512 (mean 78, median 55).
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

CHARACTERS = "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其"
BERT_BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 21128,
    "max_position_embeddings": 512,
}
MODELS: dict[str, dict[str, int]] = {
    "bert-base": BERT_BASE,
    "4-layer": BERT_BASE | {"hidden_size": 312, "num_hidden_layers": 4, "intermediate_size": 1200},
    "tiny": BERT_BASE
    | {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 200},
}
"""4-layer: the shape of TinyBERT-4L-312 (arXiv:1909.10351)."""


def lengths_of(kind: str, path: Path | None, rows: int, *, vocabulary: Path | None = None, seed: int = 0) -> list[int]:
    """Lengths of so many texts without their two special tokens. ``kind``: "cluener" or "reviews".

    ``vocabulary``: a BERT vocab.txt; the texts of ``path`` are counted in its tokens, else in characters.
    """
    draw = np.random.default_rng(seed)
    if path is None:
        if kind == "cluener":
            return np.clip(draw.normal(32.7, 13, rows), 2, 49).astype(int).tolist()
        return np.clip(draw.lognormal(3.95, 0.9, rows), 3, 510).astype(int).tolist()
    lines = path.read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] if line.startswith("{") else line.split("\t")[-1] for line in lines if line]
    texts = [texts[i] for i in draw.integers(0, len(texts), rows).tolist()]
    if vocabulary is None:
        return [len(text) for text in texts]
    from transformers import BertTokenizerFast

    # By position: the argument is vocab_file in transformers 4 and vocab in 5, and 5 takes the other without a word.
    tokenizer = BertTokenizerFast(str(vocabulary), do_lower_case=True)
    assert len(tokenizer) > 1000
    return [max(1, len(ids)) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]  # type: ignore


def made_up_text(length: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(CHARACTERS, k=length))


def write_rows(path: Path, lengths: list[int], task: str, seed: int = 0) -> Path:
    """JSON lines of random characters, with two entity types or two classes."""
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for length in lengths:
            text = "".join(draw.choices(CHARACTERS, k=length))
            row: dict[str, Any] = {"text": text}
            if task == "ner":
                start = draw.randrange(max(1, length - 2))
                row["entities"] = [[start, min(length, start + 2), draw.choice(["name", "place"])]]
            else:
                row["label"] = draw.choice(["good", "bad"])
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def write_model(folder: Path, name: str) -> Path:
    """A BERT with random weights and a vocabulary of made-up size that knows CHARACTERS."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    config = BertConfig(**MODELS[name])
    folder.mkdir(parents=True, exist_ok=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS]
    words += [f"[unused{i}]" for i in range(config.vocab_size - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True)  # by position, as above
    assert len(tokenizer) == config.vocab_size
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    return folder


def flops_per_token(name: str, mean_square_over_mean: float) -> float:
    """FLOPs of forward and backward for one useful token: 6 per weight of a matrix, 12 L hidden of attention a layer.

    ``mean_square_over_mean``: of the lengths, the context that an average token attends to.
    """
    m = MODELS[name]
    hidden, inner, layers = m["hidden_size"], m["intermediate_size"], m["num_hidden_layers"]
    return 6.0 * layers * (4 * hidden * hidden + 2 * hidden * inner) + 12.0 * layers * hidden * mean_square_over_mean


def gemm_peak_flops(seconds: float = 1.0) -> float:
    """FLOPs a CPU-second (wall second on CUDA is not asked here) of the largest fp32 product of bert-base's shapes."""
    import time

    best = 0.0
    a, b, c = torch.randn(512, 768), torch.randn(768, 3072), torch.empty(512, 3072)
    end = time.process_time() + seconds
    while time.process_time() < end:
        begin = time.process_time()
        for _product in range(4):
            torch.mm(a, b, out=c)
        best = max(best, 4 * 2 * 512 * 768 * 3072 / (time.process_time() - begin))
    return best


def versions() -> str:
    import transformers

    return (
        f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.get_num_threads()} thread(s), "
        f"{torch.backends.cpu.get_cpu_capability()}"
    )


def keep_table(path: Path, title: str, heading: str, text: str) -> None:
    """Put ``text`` under ``## heading`` of a file of dated tables, in the place of what stood there."""
    import datetime
    import shlex
    import sys

    # Files by their names: where they lay on this machine helps nobody.
    words = [word if word.startswith("-") else Path(word).name for word in sys.argv[1:]]
    command = "python " + shlex.join([f"benchmarks/{Path(sys.argv[0]).name}", *words])
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    section = f"## {heading}\n\n{today}. {text}\n\nRepeat: `{command}`\n"
    whole = path.read_text(encoding="utf-8") if path.is_file() else f"# {title}\n"
    first, *others = whole.split("\n## ")
    kept = [f"## {other.strip()}\n" for other in others if not other.startswith(f"{heading}\n")]
    path.write_text("\n".join([first.strip() + "\n", *kept, section]), encoding="utf-8")
