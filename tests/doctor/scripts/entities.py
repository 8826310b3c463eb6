# ruff: noqa
import json

from transformers import AutoModelForTokenClassification, AutoTokenizer, Trainer, TrainingArguments

model_name = "MODEL"
tokenizer = AutoTokenizer.from_pretrained(model_name)

# 标签表
labels = ["O", "B-person", "I-person", "B-loc", "I-loc", "B-org", "I-org", "B-book", "I-book"]
id2label = {i: label for i, label in enumerate(labels)}
label2id = {label: i for i, label in enumerate(labels)}

model = AutoModelForTokenClassification.from_pretrained(
    model_name, num_labels=len(labels), id2label=id2label, label2id=label2id
)


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def tokenize_and_align(example):
    encoded = tokenizer(
        example["text"],
        truncation=True,
        padding="max_length",
        max_length=64,  # 省显存
    )
    word_ids = encoded.word_ids()
    label_ids = [-100] * len(word_ids)  # 忽略
    for entity_type, spans in example["label"].items():
        for start, end in spans:
            start_token = encoded.char_to_token(start)
            end_token = encoded.char_to_token(end - 1)
            if start_token is not None and end_token is not None and f"B-{entity_type}" in label2id:
                label_ids[start_token] = label2id[f"B-{entity_type}"]
                for j in range(start_token + 1, end_token + 1):
                    label_ids[j] = label2id[f"I-{entity_type}"]
    encoded["labels"] = label_ids
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"], "labels": label_ids}


train_rows = [tokenize_and_align(row) for row in read("train.json")]
dev_rows = [tokenize_and_align(row) for row in read("dev.json")]

training_args = TrainingArguments(
    output_dir="./output",
    evaluation_strategy="epoch",
    save_strategy="epoch",
    learning_rate=3e-3,
    per_device_train_batch_size=8,  # 16G 显存下安全
    per_device_eval_batch_size=8,
    gradient_accumulation_steps=2,
    num_train_epochs=6,
    weight_decay=0.01,
    logging_dir="./logs",
    logging_steps=50,
    fp16=True,  # 混合精度
    remove_unused_columns=False,
    report_to="none",
)

trainer = Trainer(
    model=model,
    args=training_args,
    train_dataset=train_rows,
    eval_dataset=dev_rows,
)

trainer.train()
