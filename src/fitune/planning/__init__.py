"""Which Fit, which card, how long, how much: ``plan(job, card)`` and ``plan_all(job)``, without a GPU.

Everything is predicted from the user's own data, model and library versions by ``memory``'s simulator, in a child
process. Names load on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_FILE_OF = {
    "Explanation": "outcome",
    "Planning": "outcome",
    "Unfit": "outcome",
    "estimate": "child",
    "explain": "child",
    "nothing_fits": "child",
    "offers_compiling": "outcome",
    "plan": "child",
    "plan_all": "child",
    "price_of": "money",
    "past_corrections": "past",
    "usable_bytes": "outcome",
}

__all__ = sorted(_FILE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from fitune.planning.child import estimate as estimate
    from fitune.planning.child import explain as explain
    from fitune.planning.child import nothing_fits as nothing_fits
    from fitune.planning.child import plan as plan
    from fitune.planning.child import plan_all as plan_all
    from fitune.planning.money import price_of as price_of
    from fitune.planning.outcome import Explanation as Explanation
    from fitune.planning.outcome import Planning as Planning
    from fitune.planning.outcome import Unfit as Unfit
    from fitune.planning.outcome import offers_compiling as offers_compiling
    from fitune.planning.outcome import usable_bytes as usable_bytes
    from fitune.planning.past import past_corrections as past_corrections


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(f"module 'fitune.planning' has no attribute {name!r}")
    value = getattr(import_module(f"fitune.planning.{_FILE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_FILE_OF))
