"""What is learned: tasks (text to targets, logits to predictions), metrics, the format of a trained model, and the
one optimizer step that planning simulates and training runs. Names load on first use: metrics need no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_FILE_OF = {
    "Task": "evaluation",
    "Evaluator": "evaluation",
    "Scored": "evaluation",
    "Tally": "evaluation",
    "encode_parts": "evaluation",
    "score": "evaluation",
    "NerTask": "ner",
    "ClassificationTask": "classification",
    "SplitData": "split",
    "Learner": "learner",
    "LinearChainCrf": "crf",
    "ClassMetrics": "metrics",
    "EntityMetrics": "metrics",
    "MultiLabelMetrics": "metrics",
    "StepMachine": "assembling",
    "assemble": "assembling",
    "class_weights": "assembling",
    "make_learner": "assembling",
    "make_optimizer_of": "assembling",
    "make_task": "assembling",
    "ModelSettings": "saved",
    "SavedModel": "saved",
    "load": "saved",
    "read_settings": "saved",
    "rewrite_settings": "saved",
    "save": "saved",
    "settings_of": "saved",
    "sweep_model": "saved",
}

__all__ = sorted(_FILE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from fitune.tasks.assembling import StepMachine as StepMachine
    from fitune.tasks.assembling import assemble as assemble
    from fitune.tasks.assembling import class_weights as class_weights
    from fitune.tasks.assembling import make_learner as make_learner
    from fitune.tasks.assembling import make_optimizer_of as make_optimizer_of
    from fitune.tasks.assembling import make_task as make_task
    from fitune.tasks.classification import ClassificationTask as ClassificationTask
    from fitune.tasks.crf import LinearChainCrf as LinearChainCrf
    from fitune.tasks.evaluation import Evaluator as Evaluator
    from fitune.tasks.evaluation import Scored as Scored
    from fitune.tasks.evaluation import Tally as Tally
    from fitune.tasks.evaluation import Task as Task
    from fitune.tasks.evaluation import encode_parts as encode_parts
    from fitune.tasks.evaluation import score as score
    from fitune.tasks.learner import Learner as Learner
    from fitune.tasks.metrics import ClassMetrics as ClassMetrics
    from fitune.tasks.metrics import EntityMetrics as EntityMetrics
    from fitune.tasks.metrics import MultiLabelMetrics as MultiLabelMetrics
    from fitune.tasks.ner import NerTask as NerTask
    from fitune.tasks.saved import ModelSettings as ModelSettings
    from fitune.tasks.saved import SavedModel as SavedModel
    from fitune.tasks.saved import load as load
    from fitune.tasks.saved import read_settings as read_settings
    from fitune.tasks.saved import rewrite_settings as rewrite_settings
    from fitune.tasks.saved import save as save
    from fitune.tasks.saved import settings_of as settings_of
    from fitune.tasks.saved import sweep_model as sweep_model
    from fitune.tasks.split import SplitData as SplitData


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module 'fitune.tasks' has no attribute {name!r}")
    value = getattr(import_module(f"fitune.tasks.{_FILE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_FILE_OF))
