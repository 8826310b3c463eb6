"""Import transformers without the packages it takes along wherever it finds them installed."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import cast

EXTRAS = ("bitsandbytes", "datasets", "peft", "scipy")
"""transformers 5.24 imports them with its Trainer; training here uses none (8-bit AdamW asks for its own package)."""


@contextmanager
def without_extras() -> Generator[None, None, None]:
    """For a process that is all our own, such as ``fitune train``: what transformers looks for meanwhile is not found.

    ``None`` in ``sys.modules`` is Python's own way to say so. Afterwards the packages can be imported as ever, but
    transformers remembers that they were not there: in a user's notebook or script that would be wrong.
    """
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    hidden = [name for name in EXTRAS if name not in modules]
    for name in hidden:
        modules[name] = None
    try:
        yield
    finally:
        for name in hidden:
            if name in modules and modules[name] is None:
                del modules[name]
