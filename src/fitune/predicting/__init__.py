"""A trained model at work: Predictor, HTTP service with its page, export. Names load on first use: the service needs
packages that a Predictor does not."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_FILE_OF = {
    "ENGINES": "engines",
    "Limits": "service",
    "Predictor": "predictor",
    "choose_token": "serving",
    "create_app": "service",
    "export": "export",
    "is_loopback": "serving",
    "pack": "pushing",
    "predict_with_workers": "workers",
    "push": "pushing",
    "serve": "serving",
}

__all__ = sorted(_FILE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from fitune.predicting.engines import ENGINES as ENGINES
    from fitune.predicting.export import export as export
    from fitune.predicting.predictor import Predictor as Predictor
    from fitune.predicting.pushing import pack as pack
    from fitune.predicting.pushing import push as push
    from fitune.predicting.service import Limits as Limits
    from fitune.predicting.service import create_app as create_app
    from fitune.predicting.serving import choose_token as choose_token
    from fitune.predicting.serving import is_loopback as is_loopback
    from fitune.predicting.serving import serve as serve
    from fitune.predicting.workers import predict_with_workers as predict_with_workers


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module 'fitune.predicting' has no attribute {name!r}")
    value = getattr(import_module(f"fitune.predicting.{_FILE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_FILE_OF))
