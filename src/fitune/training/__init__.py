"""Plan -> Run: train, defaults, early stopping. Names load on first use: the baseline needs no torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_FILE_OF = {
    "baseline": "baselines",
    "baseline_of": "baselines",
    "AlreadyFinished": "resume",
    "Choice": "resume",
    "Saving": "saving",
    "choose_run": "resume",
    "is_finished": "resume",
    "Splits": "splits",
    "read_splits": "splits",
    "resolve_defaults": "defaults",
    "train": "learning",
}

__all__ = sorted(_FILE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from fitune.training.baselines import baseline as baseline
    from fitune.training.baselines import baseline_of as baseline_of
    from fitune.training.defaults import resolve_defaults as resolve_defaults
    from fitune.training.learning import train as train
    from fitune.training.resume import AlreadyFinished as AlreadyFinished
    from fitune.training.resume import Choice as Choice
    from fitune.training.resume import choose_run as choose_run
    from fitune.training.resume import is_finished as is_finished
    from fitune.training.saving import Saving as Saving
    from fitune.training.splits import Splits as Splits
    from fitune.training.splits import read_splits as read_splits


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module 'fitune.training' has no attribute {name!r}")
    value = getattr(import_module(f"fitune.training.{_FILE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_FILE_OF))
