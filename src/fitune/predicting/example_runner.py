"""The exported model on onnxruntime alone: pip install onnxruntime tokenizers numpy; python example.py "a text" """

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

folder = Path(__file__).parent
settings = json.loads((folder / "fitune.json").read_text(encoding="utf-8"))
labels = json.loads((folder / "config.json").read_text(encoding="utf-8"))["id2label"]
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.enable_truncation(settings["max_length"])  # fitune itself splits longer texts into windows instead
session = onnxruntime.InferenceSession(str(folder / "model.onnx"))

for text in sys.argv[1:]:
    row = tokenizer.encode(text)
    feed = {"input_ids": row.ids, "attention_mask": row.attention_mask, "token_type_ids": row.type_ids}
    feed = {i.name: np.array([feed[i.name]], np.int64) for i in session.get_inputs()}
    logits = np.asarray(session.run(["logits"], feed)[0])[0]
    if settings["task"] == "classification":
        print(text, labels[str(logits.argmax())])
    else:  # the best class of each token; a CRF's transitions (crf.safetensors) are left out here
        best = zip(row.offsets, logits.argmax(-1), strict=True)
        tags = [(text[a:b], labels[str(k)]) for (a, b), k in best if b > a]
        print(text, [pair for pair in tags if pair[1] != "O"])
