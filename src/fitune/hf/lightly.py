"""For a process that is all our own: import transformers without what it takes along, and keep freed memory."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import cast

EXTRAS = ("bitsandbytes", "datasets", "peft", "scipy", "sklearn")
"""transformers 4.57 or 5.24 imports them with its Trainer; training here uses none (8-bit AdamW asks for its own
package). scikit-learn cannot be imported without scipy, so it goes with it."""

OF_SEVERAL = ("LOCAL_RANK", "RANK", "WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""Environment variables by which launchers (torchrun, accelerate, MPI) tell a process that it is one of several."""


@contextmanager
def light_imports() -> Generator[None, None, None]:
    """For a process that is all our own, such as ``fitune train``: import torch and transformers sooner.

    The garbage collector rests meanwhile, and never looks at what was imported; ``EXTRAS`` are not found; torch says
    that it was built without ``torch.distributed``, unless this process is one of several. Afterwards everything is
    there as ever, but transformers remembers what was not: in a user's notebook or script that would be wrong.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with _hidden(EXTRAS), _without_distributed():
            yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


@contextmanager
def _hidden(names: Sequence[str]) -> Generator[None, None, None]:
    """``None`` in ``sys.modules`` is Python's own way to say that a package is not there."""
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    hidden = [name for name in names if name not in modules]
    for name in hidden:
        modules[name] = None
    try:
        yield
    finally:
        for name in hidden:
            if name in modules and modules[name] is None:
                del modules[name]


@contextmanager
def _without_distributed() -> Generator[None, None, None]:
    """transformers imports distributed tensors, checkpoints and FSDP (0.4 s) where torch says that it has them."""
    import torch.distributed

    if any(name in os.environ for name in OF_SEVERAL):
        yield
        return
    plain = torch.distributed.is_available
    torch.distributed.is_available = lambda: False
    try:
        yield
    finally:
        torch.distributed.is_available = plain


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
