"""No entity score is computed

## What it says

A token-classification script without `compute_metrics`, or with token accuracy alone.

## Why

Most tokens are O: accuracy is above 90 % for a model that finds nothing, and the loss does not tell either.

## How to know

The log shows `eval_loss` (and perhaps `eval_accuracy`), and no F1.

## How to fix

Give the Trainer a `compute_metrics` that compares whole entities (border and type), such as seqeval's F1; the
mended script has one.

## How safe

Safe: only the report changes.

## Sources

chakki-works/seqeval ; taishan1994/W2NER_predict#18
"""

import ast
import re
from collections.abc import Iterator

from fitune.doctor.script import Script
from fitune.doctor.symptom import Edit, Symptom

SEVERITY = "warning"
SAFETY = "safe"

METRIC = '''def compute_metrics(prediction):
    """Entity F1: an entity counts when its borders and its type are right."""

    def entities(tags):
        found, start, kind = set(), None, None
        for i, tag in enumerate([*tags, "O"]):
            if start is not None and tag != f"I-{kind}":
                found.add((start, i, kind))
                start = None
            if tag.startswith("B-"):
                start, kind = i, tag[2:]
        return found

    names = MODEL.config.id2label
    hits = said = gold = 0
    for scores, truth in zip(prediction.predictions, prediction.label_ids):
        kept = truth != -100
        guess = entities([names[int(i)] for i in scores.argmax(-1)[kept]])
        right = entities([names[int(i)] for i in truth[kept]])
        hits, said, gold = hits + len(guess & right), said + len(guess), gold + len(right)
    return {"f1": 2 * hits / max(1, said + gold), "precision": hits / max(1, said), "recall": hits / max(1, gold)}


'''


def check(script: Script) -> Iterator[Symptom]:
    """A Trainer for tokens without compute_metrics, or with one that never speaks of entities."""
    if not script.is_token_task:
        return
    for trainer in script.calls("Trainer"):
        if trainer.keyword("compute_metrics"):
            if not re.search(r"seqeval|entit|f1_score|\bf1\b|conlleval", script.text, re.IGNORECASE):
                yield script.symptom(trainer.node)
            continue
        model, statement = script.resolve(trainer.value("model")), script.statement(trainer.node)
        name = trainer.value("model")
        edits: list[Edit] = []
        if isinstance(name, ast.Name) and model is not None and statement is not None:
            edits = [
                script.insert_before(statement, METRIC.replace("MODEL", name.id).rstrip("\n") + "\n\n"),
                script.add_keyword(trainer, "compute_metrics=compute_metrics"),
            ]
        yield script.symptom(trainer.node, edits=edits)
