"""A folder in which fine-tuning scripts can run without a network: tiny data, and a tiny BERT with random weights."""

import csv
import json
from pathlib import Path

NAMES, PLACES, FIRMS = (
    ("张伟", "王芳", "李强", "赵敏丽"),
    ("北京", "上海", "广", "石家庄"),
    ("华为", "小米", "阿里云", "金"),
)
TEXTS = ("{n}去了{p}", "{n}在{f}上班", "请{f}的{n}到{p}出差", "在{p}的{f}请{n}来", "今天{n}不在{p}")


def entity_rows(count, offset=0):
    """Rows in the shape of CLUENER's: inclusive ends."""
    rows = []
    for i in range(offset, offset + count):
        fills = {"n": NAMES[i % 4], "p": PLACES[i // 4 % 4], "f": FIRMS[i // 16 % 4]}
        text, label = TEXTS[i % 5].format(**fills), {}
        for kind, key in (("name", "n"), ("address", "p"), ("company", "f")):
            at = text.find(fills[key])
            if at >= 0:
                label[kind] = [[at, at + len(fills[key]) - 1]]
        rows.append({"text": text, "label": label})
    return rows


def with_mentions(row):
    """The same row as CLUENER publishes it: a level of mentions between type and spans."""
    text = row["text"]
    label = {kind: {text[s : e + 1]: [[s, e]] for s, e in spans} for kind, spans in row["label"].items()}
    return {"text": text, "label": label}


def reviews(count):
    """(text, class) of very short reviews."""
    return [(f"{'很好吃' if i % 2 else '太难吃'}的{PLACES[i // 2 % 4]}菜", i % 2) for i in range(count)]


def write_json_lines(path: Path, rows):
    """One row a line."""
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")


def write_table(path: Path, head, rows, delimiter=","):
    """With its header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([head, *rows])


def make_tiny_model(folder: Path):
    """Weights, configuration and vocabulary, as a folder that ``from_pretrained`` takes."""
    import torch
    import transformers

    characters = sorted({c for r in entity_rows(200) for c in r["text"]} | set("很好吃太难的菜"))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}', encoding="utf-8")
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=128,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
