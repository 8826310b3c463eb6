"""The exported model without torch: pip install onnxruntime tokenizers numpy safetensors; python example.py TEXT ...

Finds what ``fitune predict`` finds in a text that fits into the model's window. Beyond this example, fitune splits
longer texts into windows, and takes apart a run of unlike characters that the vocabulary lacks, such as emoji.
A model of pairs takes them in turn: python example.py TEXT ITS_PAIR ...
"""

import json
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Array = np.ndarray[Any, Any]
folder = Path(__file__).parent
settings, config, export = (
    json.loads((folder / name).read_text(encoding="utf-8")) for name in ("fitune.json", "config.json", "export.json")
)
labels = [config["id2label"][str(number)] for number in range(len(config["id2label"]))]
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.no_padding()
tokenizer.enable_truncation(settings["max_length"])
session = onnxruntime.InferenceSession(str(folder / "model.onnx"))


def best_path(scores: Array, crf: dict[str, Array]) -> list[int]:
    """The best classes (Viterbi) for ``scores`` (tokens, classes) under the CRF; what BIO forbids is ruled out."""
    transitions, start = crf["transitions"].copy(), crf["start"].copy()
    for number, label in enumerate(labels):
        if label.startswith("I-"):
            outside = [before not in ("B-" + label[2:], label) for before in labels]
            transitions[outside, number] = start[number] = -1e4
    best, came_from = start + scores[0], list[Array]()
    for row in scores[1:]:
        moved = best[:, None] + transitions
        came_from.append(moved.argmax(0))
        best = moved.max(0) + row
    path = [int((best + crf["end"]).argmax())]
    for origin in reversed(came_from):
        path.append(int(origin[path[-1]]))
    return path[::-1]


def entities(text: str, offsets: Sequence[tuple[int, int]], path: Sequence[int]) -> list[dict[str, Any]]:
    """Runs of one type as characters [start, end) of the text; B- begins a new one."""
    runs: list[list[Any]] = []  # start, end, where the next token begins, type
    before = "O"
    following = [*(start for start, _end in offsets), len(text)][1:]
    for (start, end), tag, limit in zip(offsets, (labels[number] for number in path), following, strict=True):
        if tag[0] == "I" and tag[2:] == before[2:]:
            runs[-1][1:3] = end, limit
        elif tag != "O":
            runs.append([start, end, limit, tag[2:]])
        before = tag
    found: list[dict[str, Any]] = []
    for start, end, limit, label in runs:
        # Marks belong to the character before them where the tokenizer drops them.
        while end < limit and (text[end] == "\u200d" or unicodedata.category(text[end])[0] == "M"):
            end += 1
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        end = start + len(piece.strip())
        # Of a character that is several tokens the earlier entity has all.
        start = max(start, found[-1]["end"]) if found else start
        if start < end:
            found.append({"start": start, "end": end, "label": label, "text": text[start:end]})
    return found


texts = sys.argv[1:]
for inputs in zip(texts[::2], texts[1::2], strict=True) if settings["pairs"] else ([text] for text in texts):
    plain = [text.translate(str.maketrans(export["replaced_characters"])) for text in inputs]
    row = tokenizer.encode(plain[0], plain[1] if settings["pairs"] else None)
    if row.overflowing:
        print(f"only the first {len(row.ids)} tokens of this text are read:", inputs[0][:20], file=sys.stderr)
    feed = {"input_ids": row.ids, "attention_mask": row.attention_mask, "token_type_ids": row.type_ids}
    feed = {i.name: np.array([feed[i.name]], np.int64) for i in session.get_inputs()}
    logits = np.asarray(session.run(["logits"], feed)[0])[0]
    answer: dict[str, Any] = dict(zip(("text", "text_pair"), inputs, strict=False))
    if settings["task"] == "ner":
        scores, path = logits[1:-1], list[int]()  # without [CLS] and [SEP]
        if len(scores):
            crf = settings["head"] == "crf"
            path = best_path(scores, load_file(folder / "crf.safetensors")) if crf else scores.argmax(-1).tolist()
        answer["entities"] = entities(inputs[0], row.offsets[1:-1], path)
    elif settings["multi_label"]:
        least = [settings["thresholds"].get(label, 0.5) for label in labels]
        answer["labels"] = [
            label for label, p, t in zip(labels, 1 / (1 + np.exp(-logits)), least, strict=True) if p >= t
        ]
    else:
        answer["labels"] = [labels[logits.argmax()]]
    print(json.dumps(answer, ensure_ascii=False))
