"""Peak memory of any training step without a GPU: predict it (simulate) or enforce it (VirtualCard). Torch only."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fitune.memory.allocator import Allocator, DoesNotFit
    from fitune.memory.virtual_card import VirtualCard

__all__ = ["Allocator", "DoesNotFit", "VirtualCard"]

_HOMES = {"Allocator": "allocator", "DoesNotFit": "allocator", "VirtualCard": "virtual_card"}


def __getattr__(name: str) -> Any:
    """Load torch only when something is used."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"fitune.memory.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
