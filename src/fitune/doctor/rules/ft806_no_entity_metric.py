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

from fitune.doctor.label_names import keywords_for_names
from fitune.doctor.script import Call, Script
from fitune.doctor.symptom import Edit, Symptom
from fitune.messages import _
from fitune.values import Fix

SEVERITY = "warning"
SAFETY = "safe"

METRIC = '''def NAME(prediction):
    """Entity F1: an entity counts when its borders and its type are right."""
    def entities(tags):
        found, start, kind = set(), None, None
        for i, tag in enumerate([*tags, "O"]):
            part, _, name = tag.partition("-")
            if start is not None and (part not in ("I", "M", "E") or name != kind):
                found.add((start, i, kind))
                start = None
            if part in ("B", "S"):
                start, kind = i, name
        return found

    names = MODEL.config.id2label
    hits = said = gold = 0
    for scores, truth in zip(prediction.predictions, prediction.label_ids):
        kept = truth != -100
        guess = entities([names[int(i)] for i in scores.argmax(-1)[kept]])
        right = entities([names[int(i)] for i in truth[kept]])
        hits, said, gold = hits + len(guess & right), said + len(guess), gold + len(right)
    scores = {"f1": 2 * hits / max(1, said + gold), "precision": hits / max(1, said), "recall": hits / max(1, gold)}
    return RETURNED
'''


def check(script: Script) -> Iterator[Symptom]:
    """A Trainer for tokens without compute_metrics, or with one that never speaks of entities."""
    if not script.is_token_task:
        return
    for trainer in script.calls("Trainer"):
        own = trainer.keyword("compute_metrics")
        if own and re.search(r"seqeval|entit|f1_score|\bf1\b|conlleval", script.text, re.IGNORECASE):
            continue
        edits = _edits(script, trainer, own)
        yield script.symptom(trainer.node, edits=edits, fixes=() if edits else (_by_hand(),))


def _edits(script: Script, trainer: Call, own: ast.keyword | None) -> list[Edit]:
    """The metric above the Trainer; what the script's own one says is kept beside it."""
    name = trainer.value("model") or next(iter(trainer.node.args), None)
    statement = script.statement(trainer.node)
    if not isinstance(name, ast.Name) or statement is None or not _knows_its_names(script, name):
        return []
    if own is None:
        return [
            script.insert_before(statement, _metric("compute_metrics", name.id, "scores")),
            script.add_keyword(trainer, "compute_metrics=compute_metrics"),
        ]
    if not isinstance(own.value, ast.Name):
        return []
    returned = f"{{**{own.value.id}(prediction), **scores}}"
    return [
        script.insert_before(statement, _metric("entity_metrics", name.id, returned)),
        script.replace(own.value, "entity_metrics"),
    ]


def _metric(name: str, model: str, returned: str) -> str:
    text = METRIC.replace("NAME", name).replace("MODEL", model).replace("RETURNED", returned)
    return text.rstrip("\n") + "\n\n"


def _knows_its_names(script: Script, model: ast.Name) -> bool:
    """Whether the model's configuration has B- and I- names, or will have them in the mended copy (FT817)."""
    made = script.resolve(model)
    if not isinstance(made, ast.Call):
        return False
    call = Call(made)
    return bool(call.keyword("id2label") or call.keyword("config") or keywords_for_names(script, call)) or not (
        call.keyword("num_labels")
    )


def _by_hand() -> Fix:
    text = _(
        "the script does not show the names of its labels, so this is left to you: give the model id2label, and the "
        "Trainer a compute_metrics that turns label_ids and argmax(-1) into names and calls seqeval.metrics.f1_score"
    )
    return Fix(safety="safe", text=text)
