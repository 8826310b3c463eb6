"""fitune: fine-tune encoder models on the card you have, without ever losing a run to "CUDA out of memory".

Batch size is a learning choice, the micro-batch is a memory choice: the user makes the first, fitune the second,
and the second never changes what is learned.

The house has floors; a room imports the faces of rooms on floors below it, never above, never beside:

====== ===================================================== ==================================================
floor  rooms                                                 what it may import
====== ===================================================== ==================================================
6      cli                                                   everything below
5      planning, training, predicting, doctor                tasks and below
4      tasks                                                 hf and below
3      hf                                                    all that knows transformers' private shape
2      data, runs, machine                                   no torch
1      memory, microbatch, checkpoint, catalog               islands, each usable alone
0      values, messages                                      the nouns, and the words for people
====== ===================================================== ==================================================

Names here load on first use (PEP 562), so that ``import fitune`` costs nothing and needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

# Public name -> the room whose face holds it.
_ROOM_OF = {
    "Card": "values",
    "Example": "values",
    "Fit": "values",
    "Job": "values",
    "Plan": "values",
    "Prediction": "values",
    "Refusal": "values",
    "Span": "values",
    "read": "data",
    "Trainer": "hf",
    "plan": "planning",
    "Predictor": "predicting",
    "train": "training",
}

__all__ = ["__version__", *sorted(_ROOM_OF)]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from fitune.data import read as read
    from fitune.hf import Trainer as Trainer
    from fitune.planning import plan as plan
    from fitune.predicting import Predictor as Predictor
    from fitune.training import train as train
    from fitune.values import Card as Card
    from fitune.values import Example as Example
    from fitune.values import Fit as Fit
    from fitune.values import Job as Job
    from fitune.values import Plan as Plan
    from fitune.values import Prediction as Prediction
    from fitune.values import Refusal as Refusal
    from fitune.values import Span as Span


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'fitune' has no attribute {name!r}")
    value = getattr(import_module(f"fitune.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_ROOM_OF))
