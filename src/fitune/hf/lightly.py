"""For a process that is all our own: import transformers without what it takes along, and keep freed memory."""

from __future__ import annotations

import ctypes
import os
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


KEPT_BYTES = 2**31 - 1
LARGEST_KEPT_BYTES = 2**25
"""glibc gives larger blocks back whatever it is told (mallopt(3))."""


def keep_memory() -> bool:
    """Keep the memory that a pass frees for the next one, where glibc would give it back to the system at once.

    Every page comes back as a page fault: a linear layer and its GELU over 1,024 tokens of bert-base took 63.7 ms
    instead of 57.5 (one Zen 3 core, torch 2.13). The process keeps its peak size; so it is for our own processes only.
    Returns whether it was done. Limits that the user has set (MALLOC_TRIM_THRESHOLD_ ...) stay.
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")  # another libc (musl) has another name
        trim, mmap = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD in malloc.h
        return bool(libc.mallopt(mmap, LARGEST_KEPT_BYTES) and libc.mallopt(trim, KEPT_BYTES))
    except (OSError, AttributeError):
        return False


def give_memory_back() -> bool:
    """Return to the system what ``keep_memory`` keeps and nobody uses; whether the C library can.

    Passes of ever other sizes leave holes between longer-lived blocks: a process that serves for days would creep up to
    far more than its largest pass needs.
    """
    if sys.platform != "linux":
        return False
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):  # another libc
        return False
    return True
