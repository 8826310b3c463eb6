"""Tiny models with random weights, saved as fitune saves a trained one; their own predictions serve as gold."""

import json

import torch
from transformers import BertConfig, BertForSequenceClassification, BertForTokenClassification, BertTokenizerFast

from fitune.tasks import ClassificationTask, Learner, LinearChainCrf, NerTask, save, settings_of

CHARACTERS = "一二三四五六七八九十甲乙丙丁天地人山水火，。"


def make_model(folder, *, head="softmax", task="ner", pairs=False, multi_label=False, layers=2):
    """A saved model folder."""
    torch.manual_seed(7)
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS]), encoding="utf-8")
    tokenizer = BertTokenizerFast(str(vocabulary))
    job_task = (
        NerTask(("person", "place"), head, 32)
        if task == "ner"
        else ClassificationTask(("no", "yes", "maybe"), multi_label, 32, (0.5, 0.5, 0.5) if multi_label else (), pairs)
    )
    config = BertConfig(
        vocab_size=len(CHARACTERS) + 5,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=len(job_task.classes),
        id2label=dict(enumerate(job_task.classes)),
        label2id={name: number for number, name in enumerate(job_task.classes)},
    )
    kind = BertForTokenClassification if task == "ner" else BertForSequenceClassification
    model = kind(config).eval()
    with torch.no_grad():  # random heads predict one class everywhere; larger weights make them lively
        model.classifier.weight.normal_(std=1.0)
    crf = LinearChainCrf(job_task.classes) if head == "crf" else None
    if crf is not None:
        with torch.no_grad():  # a new CRF is all zeros; as lively as the head, so that each of its parts matters
            for part in crf.parameters():
                part.normal_(std=2.0)
    settings = settings_of(job_task, max_length=32, base_model="tiny")
    target = folder / "model"
    save(target, Learner(model, crf=crf, multi_label=multi_label).eval(), tokenizer, settings)
    return target


def texts(count=60, longest=90):
    """Texts of many lengths, some longer than the window."""
    generator = torch.Generator().manual_seed(3)
    made = []
    for number in range(count):
        length = 1 + (number * 7) % longest
        picks = torch.randint(0, len(CHARACTERS), (length,), generator=generator).tolist()
        made.append("".join(CHARACTERS[p] for p in picks))
    return made


def write_gold(path, predictions, pairs=None):
    """The predictions as a labelled JSONL file, so that the trained model scores 1 on it."""
    with path.open("w", encoding="utf-8") as file:
        for number, prediction in enumerate(predictions):
            row = {"text": prediction.text} | ({"text_pair": pairs[number]} if pairs else {})
            if prediction.spans is not None:
                row["entities"] = [{"start": s.start, "end": s.end, "label": s.label} for s in prediction.spans]
            else:
                row["label"] = prediction.labels[0]
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path
