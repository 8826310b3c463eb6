"""A tiny BERT and a tiny classification file, written by the tests themselves."""

import random

import transformers

CHARACTERS = "天地人你我他好坏大小上下来去吃喝看听说走"


def write_model(folder, more_words=0):
    folder.mkdir()
    words = [f"word{number}" for number in range(more_words)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS, *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    transformers.set_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    return folder


def write_rows(path, rows=60, seed=0):
    draw = random.Random(seed)
    lines = ["text\tlabel"]
    for _ in range(rows):
        text = "".join(draw.choices(CHARACTERS, k=draw.randrange(3, 20)))
        lines.append(f"{text}\t{'好' if '好' in text else '坏'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
