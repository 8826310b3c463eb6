# ruff: noqa: E501
"""Logs and scripts in which nothing is wrong: several trainers, versions, consoles and languages."""

from __future__ import annotations

import random
from collections.abc import Iterator

HEADS = (
    "Some weights of BertForTokenClassification were not initialized from the model checkpoint at bert-base-chinese and are newly "
    "initialized: ['classifier.bias', 'classifier.weight']\nYou should probably TRAIN this model on a down-stream task to be able to use it "
    "for predictions and inference.",
    "Some weights of the model checkpoint at hfl/chinese-roberta-wwm-ext were not used when initializing BertForSequenceClassification: "
    "['cls.predictions.bias', 'cls.predictions.transform.dense.weight', 'cls.seq_relationship.weight']\n- This IS expected if you are "
    "initializing BertForSequenceClassification from the checkpoint of a model trained on another task or with another architecture "
    "(e.g. initializing a BertForSequenceClassification model from a BertForPreTraining model).",
    "BertForTokenClassification LOAD REPORT from: google-bert/bert-base-chinese\nKey                                        | Status     |\n"
    "-------------------------------------------+------------+-\ncls.predictions.transform.dense.weight     | UNEXPECTED |\n"
    "cls.seq_relationship.weight                | UNEXPECTED |\nclassifier.bias                            | MISSING    |\n"
    "classifier.weight                          | MISSING    |\n\nNotes:\n- UNEXPECTED:\tcan be ignored when loading from different "
    "task/architecture; not ok if you expect identical arch.",
    "",
)
NOISE = (
    "/venv/lib/python3.10/site-packages/transformers/training_args.py:1494: FutureWarning: `evaluation_strategy` is deprecated and will be "
    "removed in version 4.46 of 🤗 Transformers. Use `eval_strategy` instead\n  warnings.warn(",
    "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid "
    "deadlocks...\nTo disable this warning, you can either:\n\t- Avoid using `tokenizers` before the fork if possible",
    "nohup: ignoring input",
    "wandb: Network error (ConnectionError), entering retry loop.",
    "Using auto half precision backend",
    "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
    "sklearn/metrics/_classification.py:1471: UndefinedMetricWarning: Precision and F-score are ill-defined and being set to 0.0 in labels "
    "with no predicted samples.",
    "2026-11-03 09:12:44.101: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.",
    "'(ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out. (read timeout=10)\"), '(Request ID: a1)')' "
    "thrown while requesting HEAD https://huggingface.co/bert-base-chinese/resolve/main/config.json\nRetrying in 1s [Retry 1/5].",
    "Building prefix dict from the default dictionary ...\nLoading model cost 0.642 seconds.",
    "CUDA available: True, device: Tesla T4, memory: 15360 MiB, used 1024 MiB",
    "样本 318: 手机内存不足，总是提示磁盘空间快满了 -> 负面",
    "dropping 0 rows with empty text; max length 118 < 512, nothing is truncated",
    "num_labels=21, num_workers=4, seed=42, error_analysis=False",
    "huggingface_hub: downloading model.safetensors: 100%|██████████| 412M/412M [00:21<00:00, 19.2MB/s]",
    "OMP_NUM_THREADS is set to 4; killed 0 stale workers",
    "The tokenizer you are loading from 'model' with an incorrect regex pattern: False",
    "loss scaler: found inf in gradients, skipping step 3, new scale 32768.0",
)


def _course(chance: random.Random) -> list[tuple[float, float, float]]:
    """(training loss, development loss, score) an epoch: falling, with the usual little rise at the end."""
    train, dev, score = chance.uniform(0.5, 1.2), chance.uniform(0.3, 0.6), chance.uniform(0.55, 0.8)
    course: list[tuple[float, float, float]] = []
    for _epoch in range(chance.randint(2, 6)):
        course.append((train, dev, score))
        train *= chance.uniform(0.35, 0.7)
        dev *= chance.uniform(0.9, 1.08)
        score += (0.97 - score) * chance.uniform(0.1, 0.5)
    return course


def _trainer(chance: random.Random, version: int) -> str:
    """The stock Trainer's dictionaries; version 5 prints numbers as strings."""
    lines: list[str] = []
    rate, per_epoch = chance.choice((5e-5, 3e-5, 2e-5)), chance.randint(2, 5)
    course = _course(chance)
    q = "'" if version >= 5 else ""
    for epoch, (train, dev, score) in enumerate(course):
        for part in range(per_epoch):
            at = epoch + (part + 1) / per_epoch
            loss = train * (1.15 - 0.3 * part / per_epoch) * chance.uniform(0.95, 1.05)
            norm = f", 'grad_norm': {q}{'inf' if version < 5 and epoch == part == 0 else round(chance.uniform(0.5, 6), 3)}{q}"
            step_rate = rate * (1 - at / len(course))
            lines.append(
                f"{{'loss': {q}{loss:.4f}{q}{norm}, 'learning_rate': {q}{step_rate:.3e}{q}, 'epoch': {q}{at:.2f}{q}}}"
            )
        lines.append(
            f"{{'eval_loss': {q}{dev:.4f}{q}, 'eval_f1': {q}{score:.4f}{q}, 'eval_runtime': {q}4.2{q}, 'epoch': {q}{epoch + 1}{q}}}"
        )
    lines.append(
        f"{{'train_runtime': {q}812.3{q}, 'train_samples_per_second': {q}31.2{q}, 'train_loss': {q}{course[-1][0]:.4f}{q}}}"
    )
    return "\n".join(lines)


def _own_loop(chance: random.Random) -> str:
    lines: list[str] = []
    for epoch, (train, dev, score) in enumerate(_course(chance)):
        lines += [f"Epoch {epoch + 1} step {step} loss: {train * (1.1 - step / 3000):.4f}" for step in (100, 200, 300)]
        lines.append(f"[dev] val_loss: {dev:.4f} val_acc: {score:.4f} best: {score:.4f}")
    return "\n".join([*lines, "Training completed. Model saved to output/best"])


def _chinese(chance: random.Random) -> str:
    lines: list[str] = []
    for epoch, (train, dev, score) in enumerate(_course(chance)):
        lines.append(
            f"第 {epoch + 1} 轮：训练损失 {train:.4f}，验证损失 {dev:.4f}，F1 {score:.4f}，显存 {chance.randint(3000, 3100)} MiB"
        )
    return "\n".join([*lines, "训练完成，模型已保存"])


def _bars(chance: random.Random) -> str:
    total = chance.choice((313, 938, 2016))
    bar = "".join(
        f"\r {100 * n // total:2d}%|{'█' * (10 * n // total)}| {n}/{total} [00:{n % 60:02d}<01:00, 2.{n % 9}1it/s]"
        for n in range(0, total, 37)
    )
    return bar + "\n" + _trainer(chance, 4)


def logs() -> Iterator[tuple[str, bytes]]:
    """168 logs: six kinds of body, seeds, noise in between, consoles."""
    bodies = (
        lambda c: _trainer(c, 4), lambda c: _trainer(c, 5), _own_loop, _chinese, _bars, lambda c: _trainer(c, 4) + "\n" + _own_loop(c),
    )  # fmt: skip
    for number, body in enumerate(bodies):
        for seed in range(28):
            chance = random.Random(1000 * number + seed)
            noise = chance.sample(NOISE, 4)
            text = "\n".join([noise[0], chance.choice(HEADS), noise[1], noise[2], body(chance), noise[3], ""])
            encoding = ("utf-8", "gb18030", "utf-16", "utf-8-sig")[seed % 4]
            raw = text.replace("\n", "\r\n" if seed % 3 == 0 else "\n")
            yield f"body {number} seed {seed}", raw.encode(encoding, "replace" if encoding == "gb18030" else "strict")


_SCRIPT = """
import os
import torch
from transformers import {auto}, AutoTokenizer, {collator}, Trainer, TrainingArguments{extra_import}
from transformers.trainer_utils import get_last_checkpoint
{imports}

model_name = "{model}"
tokenizer = AutoTokenizer.from_pretrained(model_name)
{data}
args = TrainingArguments(
    output_dir="out", {evaluation}="epoch", save_strategy="epoch", learning_rate={rate}, per_device_train_batch_size={batch},
    num_train_epochs=3, {half} load_best_model_at_end=True, metric_for_best_model="{metric}", report_to="none",
)
{metrics}
trainer = Trainer(
    model=model, args=args, train_dataset=train, eval_dataset=dev, data_collator={collator}(tokenizer),
    processing_class=tokenizer, compute_metrics=compute_metrics,{callbacks}
)
last = get_last_checkpoint("out") if os.path.isdir("out") else None
trainer.train(resume_from_checkpoint=last)
trainer.save_model("out/best")
"""
_CLASSIFY = """
with open("data.csv", encoding="utf-8-sig") as file:
    rows = list(csv.DictReader(file))
labels = sorted({row["label"] for row in rows})
label2id = {label: i for i, label in enumerate(labels)}
id2label = dict(enumerate(labels))
train_rows, dev_rows = train_test_split(rows, test_size=0.1, random_state=42, stratify=[row["label"] for row in rows])
def encode(row):
    return {**tokenizer(row["text"], truncation=True, max_length=128), "labels": label2id[row["label"]]}
train, dev = [encode(row) for row in train_rows], [encode(row) for row in dev_rows]
model = AutoModelForSequenceClassification.from_pretrained(
    model_name, num_labels=len(labels), id2label=id2label, label2id=label2id
)
"""
_TAG = """
def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
train_rows, dev_rows = read("train.jsonl"), read("dev.jsonl")
labels = ["O", *sorted({tag for row in train_rows for tag in row["tags"]} - {"O"})]
label2id = {label: i for i, label in enumerate(labels)}
id2label = dict(enumerate(labels))
def encode(row):
    encoded = tokenizer(row["tokens"], is_split_into_words=True, truncation=True, max_length=256, stride=32,
                        return_overflowing_tokens=False)
    tags = [-100 if word is None else label2id[row["tags"][word]] for word in encoded.word_ids()]
    return {**encoded, "labels": tags}
train, dev = [encode(row) for row in train_rows], [encode(row) for row in dev_rows]
model = AutoModelForTokenClassification.from_pretrained(
    model_name, num_labels=len(labels), id2label=id2label, label2id=label2id
)
"""
_ACCURACY = """
def compute_metrics(prediction):
    guess = prediction.predictions.argmax(-1)
    return {"accuracy": float((guess == prediction.label_ids).mean()), "f1": f1_score(prediction.label_ids, guess, average="macro")}
"""
_ENTITIES = """
def compute_metrics(prediction):
    guess = prediction.predictions.argmax(-1)
    pairs = [(g[t != -100], t[t != -100]) for g, t in zip(guess, prediction.label_ids)]
    said = [[id2label[int(i)] for i in g] for g, _ in pairs]
    gold = [[id2label[int(i)] for i in t] for _, t in pairs]
    return {"f1": seqeval_f1(gold, said, mode="strict", scheme=IOB2)}
"""


def scripts() -> Iterator[tuple[str, str]]:
    """64 scripts: two tasks, models, precisions, batch sizes, callbacks, line endings."""
    models = ("bert-base-chinese", "hfl/chinese-macbert-base", "./models/roberta", "hfl/rbt3")
    halves = (
        "",
        "bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported(),",
        "fp16=torch.cuda.is_available(),",
        "warmup_steps=100,",
    )
    for number in range(64):
        token = number % 2 == 0
        stopping = number % 3 == 0
        text = _SCRIPT.format(
            auto="AutoModelForTokenClassification" if token else "AutoModelForSequenceClassification",
            collator="DataCollatorForTokenClassification" if token else "DataCollatorWithPadding",
            extra_import=", EarlyStoppingCallback" if stopping else "",
            imports="import json\nfrom seqeval.metrics import f1_score as seqeval_f1\nfrom seqeval.scheme import IOB2"
            if token
            else "import csv\nfrom sklearn.metrics import f1_score\nfrom sklearn.model_selection import train_test_split",
            model=models[number // 2 % 4],
            data=_TAG if token else _CLASSIFY,
            evaluation="eval_strategy",
            rate=("3e-5", "5e-5", "2e-5")[number % 3],
            batch=(8, 16, 32, 64)[number // 8 % 4],
            half=halves[number // 4 % 4],
            metric="f1" if token or number % 4 == 1 else "accuracy",
            metrics=_ENTITIES if token else _ACCURACY,
            callbacks=" callbacks=[EarlyStoppingCallback(2)]," if stopping else "",
        )
        yield f"script {number}", text.replace("\n", "\r\n") if number % 5 == 0 else text
