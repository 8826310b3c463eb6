# ruff: noqa
import csv

import torch
from sklearn.metrics import accuracy_score, precision_recall_fscore_support
from sklearn.model_selection import train_test_split
from transformers import BertForSequenceClassification, BertTokenizer, Trainer, TrainingArguments

with open("sentiment_data.csv", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
train_rows, val_rows = train_test_split(rows, test_size=0.2, random_state=42)

model_name = "MODEL"
tokenizer = BertTokenizer.from_pretrained(model_name)
model = BertForSequenceClassification.from_pretrained(model_name, num_labels=2)

# 移动模型到 GPU
device = "cuda" if torch.cuda.is_available() else "cpu"
model.to(device)


def tokenize(row):
    encoded = tokenizer(row["text"], padding="max_length", truncation=True, max_length=128)
    return {**encoded, "label": int(row["label"])}


training_args = TrainingArguments(
    output_dir="./checkpoint",
    num_train_epochs=3,
    per_device_train_batch_size=16,  # 关键参数
    evaluation_strategy="epoch",
    save_strategy="epoch",
    learning_rate=2e-3,
    warmup_ratio=0.1,
    fp16=True,
    gradient_accumulation_steps=2,
    save_total_limit=2,
    load_best_model_at_end=True,
    metric_for_best_model="accuracy",
    report_to=[],
)


def compute_metrics(pred):
    labels = pred.label_ids
    preds = pred.predictions.argmax(-1)
    precision, recall, f1, _ = precision_recall_fscore_support(labels, preds, average="binary")
    return {"accuracy": accuracy_score(labels, preds), "f1": f1, "precision": precision, "recall": recall}


trainer = Trainer(
    model=model,
    args=training_args,
    train_dataset=[tokenize(row) for row in train_rows],
    eval_dataset=[tokenize(row) for row in val_rows],
    compute_metrics=compute_metrics,
)
trainer.train()
trainer.save_model("./final-model")
