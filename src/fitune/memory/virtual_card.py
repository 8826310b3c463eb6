"""A card of a given size for real CPU runs: everything that must survive out-of-memory can be tried without a GPU.

    with VirtualCard("4GiB") as card:
        card.adopt(model)
        loss(model(batch)).backward()      # raises torch.OutOfMemoryError where a card of 4 GiB would

Every tensor that an op makes inside the ``with`` is counted by the model of the caching allocator (rounding, segments,
cache), forward and backward alike, for as long as its storage lives. What CPU kernels take inside themselves is not
seen. Tensors from before are counted once they are adopted.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fitune.memory.allocator import Allocator, Block, DoesNotFit, rounded_bytes, segment_bytes
from fitune.memory.storages import StorageBook

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def bytes_of(size: int | str) -> int:
    """``"4GiB"``, ``"800 MB"`` or a number of bytes, in bytes. Raises ValueError."""
    if isinstance(size, int):
        return size
    text = size.strip()
    digits = text.rstrip("KMGiBkmgb ")
    unit = text[len(digits) :].strip().upper() or "B"
    if unit not in _UNITS:
        raise ValueError(f"not a size: {size!r}; write 4GiB, 800MB or a number of bytes")
    return int(float(digits) * _UNITS[unit])


class VirtualCard:
    """Counts live bytes as a card of ``capacity`` would and raises ``torch.OutOfMemoryError`` with PyTorch's own text.

    ``capacity``: bytes or text such as ``"4GiB"``; None: no limit. ``context_bytes`` of it are taken from the start.
    ``fail_at``: the allocations by ops (counted from 1, over the card's whole life) that fail whatever is free.
    The card may be entered again, also from other threads; its books go on.
    """

    def __init__(
        self,
        capacity: int | str | None = None,
        *,
        fail_at: int | Iterable[int] = (),
        context_bytes: int = 0,
        expandable_segments: bool = False,
    ) -> None:
        self.capacity_bytes = None if capacity is None else bytes_of(capacity)
        self.context_bytes = context_bytes
        limit = None if self.capacity_bytes is None else self.capacity_bytes - context_bytes
        self._allocator = Allocator(limit, expandable_segments=expandable_segments)
        self._fail_at = frozenset({fail_at} if isinstance(fail_at, int) else fail_at)
        self._count = 0
        self._counting = False
        self._failures = 0
        self._lock = threading.RLock()
        self._book = StorageBook(self._birth, self._allocator.free, ("cpu",))
        self._entered = threading.local()

    # What is on the card --------------------------------------------------------------------------------------------

    @property
    def allocations(self) -> int:
        """Allocations by ops so far, failed ones included; adopted tensors do not count."""
        return self._count

    @property
    def failures(self) -> int:
        """How many of them raised."""
        return self._failures

    @property
    def live_bytes(self) -> int:
        """``torch.cuda.memory_allocated``."""
        with self._lock:
            self._book.settle()
            return self._allocator.allocated_bytes

    @property
    def reserved_bytes(self) -> int:
        """``torch.cuda.memory_reserved``."""
        with self._lock:
            self._book.settle()
            return self._allocator.reserved_bytes

    @property
    def peak_live_bytes(self) -> int:
        """``torch.cuda.max_memory_allocated``."""
        return self._allocator.peak_allocated_bytes

    @property
    def peak_reserved_bytes(self) -> int:
        """``torch.cuda.max_memory_reserved``."""
        return self._allocator.peak_reserved_bytes

    def adopt(self, *things: torch.nn.Module | torch.Tensor) -> None:
        """Put parameters and buffers of modules, or tensors, that exist already onto the card (once each)."""
        with self._lock:
            self._book.settle()
            for thing in things:
                for tensor in _tensors_of(thing):
                    try:
                        self._book.enter(tensor)
                    except DoesNotFit as refused:
                        raise torch.OutOfMemoryError(self._text(refused)) from None

    def empty_cache(self) -> None:
        """``torch.cuda.empty_cache``."""
        with self._lock:
            self._book.settle()
            self._allocator.release_cached()

    def reset_peaks(self) -> None:
        """``torch.cuda.reset_peak_memory_stats``."""
        with self._lock:
            self._book.settle()
            self._allocator.reset_peaks()

    # The with statement ---------------------------------------------------------------------------------------------

    def __enter__(self) -> "VirtualCard":
        depth: int = getattr(self._entered, "depth", 0)
        if depth == 0:
            self._entered.stack = ExitStack()
            self._entered.stack.enter_context(_Watch(self._run))
        self._entered.depth = depth + 1
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.depth -= 1
        if self._entered.depth == 0:
            self._entered.stack.close()

    # One op ---------------------------------------------------------------------------------------------------------

    def _run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, str | None]:
        """The op's outputs, or None and the text of the error."""
        outputs = func(*args, **kwargs)
        with self._lock:
            self._book.settle()
            self._counting = True
            try:
                self._book.enter_new(outputs, (args, kwargs))
            except DoesNotFit as refused:
                return None, self._text(refused)
            finally:
                self._counting = False
        return outputs, None

    def _birth(self, size_bytes: int, tensor: torch.Tensor) -> Block | None:
        if size_bytes == 0:
            return None
        self._count += self._counting
        try:
            if self._counting and self._count in self._fail_at:
                raise DoesNotFit(size_bytes, segment_bytes(rounded_bytes(size_bytes)))
            return self._allocator.allocate(size_bytes)
        except DoesNotFit:
            self._failures += 1
            raise

    def _text(self, refused: DoesNotFit) -> str:
        """Word for word what PyTorch 2.6 and later print."""
        reserved, allocated = self._allocator.reserved_bytes, self._allocator.allocated_bytes
        total = self.capacity_bytes if self.capacity_bytes is not None else reserved + self.context_bytes
        setting = "PYTORCH_ALLOC_CONF" if _torch_version() >= (2, 10) else "PYTORCH_CUDA_ALLOC_CONF"
        return (
            f"CUDA out of memory. Tried to allocate {_printed(refused.segment_bytes)}. GPU 0 has a total capacity of "
            f"{_printed(total)} of which {_printed(total - reserved - self.context_bytes)} is free. "
            f"Process {os.getpid()} has {_printed(reserved + self.context_bytes)} memory in use. "
            f"Of the allocated memory {_printed(allocated)} is allocated by PyTorch, and "
            f"{_printed(reserved - allocated)} is reserved by PyTorch but unallocated. If reserved but unallocated "
            f"memory is large try setting {setting}=expandable_segments:True to avoid fragmentation.  See "
            "documentation for Memory Management  "
            "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
        )


class _Watch(TorchDispatchMode):
    """Hands every op below autograd to ``run``."""

    def __init__(self, run: Callable[[Callable[..., Any], Any, dict[str, Any]], tuple[Any, str | None]]) -> None:
        super().__init__()
        self._hand_on = run

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        outputs, problem = self._hand_on(func, args, kwargs or {})
        if problem is not None:
            # The traceback keeps this frame: it must not keep the op's inputs, which the real op would not keep.
            del func, args, kwargs
            raise torch.OutOfMemoryError(problem)
        return outputs


def _tensors_of(thing: torch.nn.Module | torch.Tensor) -> Iterator[torch.Tensor]:
    if isinstance(thing, torch.nn.Module):
        for tensor in [*thing.parameters(), *thing.buffers()]:
            yield tensor
            if tensor.grad is not None:
                yield tensor.grad
    else:
        yield thing


def _torch_version() -> tuple[int, ...]:
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def _printed(size_bytes: int) -> str:
    """As PyTorch prints sizes."""
    if size_bytes <= 1 << 10:
        return f"{size_bytes} bytes"
    for unit, name in ((1 << 10, "KiB"), (1 << 20, "MiB")):
        if size_bytes <= unit << 10:
            return f"{size_bytes / unit:.2f} {name}"
    return f"{size_bytes / (1 << 30):.2f} GiB"
