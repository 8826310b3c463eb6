"""A small BERT and a fixed workload: the planner's own code at a size that a test can pay for."""

from typing import Any

from fitune.planning.models import MetaLoader
from fitune.planning.searching import Search
from fitune.planning.workload import Workload, fixed_workload
from fitune.values import Job

LABELS = ("a", "b", "c")


def config(layers: int = 2, hidden: int = 128) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=12000,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
    )


def job(**changes: Any) -> Job:
    fields: dict[str, Any] = {"train": "x", "task": "ner", "head": "softmax", "batch_size": 16, "epochs": 2}
    return Job(**{**fields, **changes})


def workload(length: int = 256, rows: int = 64, **changes: Any) -> Workload:
    return fixed_workload(job(**changes), LABELS, length, rows)


def search(wanted: Workload | None = None, **sizes: int) -> Search:
    return Search(wanted or workload(), MetaLoader(config(**sizes)), layers=2, segments=True)
