"""When a storage is born and when it dies, seen from a dispatch mode.

A storage is born when an op returns a tensor on a storage that none of the op's inputs lives on; it dies when the last
tensor on it does, wherever that happens (a weak reference to the untyped storage tells). Deaths are noted at once and
handed on at the next op, so that books are never changed in the middle of an entry.
"""

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Tensors in an op's arguments or outputs: bare, or in (nested) lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)


class StorageBook:
    """Live storages on the watched device types, each with the handle that ``on_birth`` gave.

    ``on_birth(size_bytes, tensor)`` may raise: then the storage is not entered, and those born before it in the same op
    leave again when they die. ``on_death(handle)`` is called once for each handle.
    """

    def __init__(
        self,
        on_birth: Callable[[int, torch.Tensor], Any],
        on_death: Callable[[Any], None],
        device_types: Iterable[str] = ("cpu",),
    ) -> None:
        self._on_birth, self._on_death = on_birth, on_death
        self._device_types = frozenset(device_types)
        self._live: dict[int, tuple[weakref.ref[Any], Any]] = {}
        self._dead: deque[int] = deque()

    def settle(self) -> None:
        """Hand the deaths since the last call on."""
        while self._dead:
            entry = self._live.pop(self._dead.popleft(), None)
            if entry is not None:
                self._on_death(entry[1])

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor's storage is in the book."""
        return id(tensor.untyped_storage()) in self._live

    def handle(self, tensor: torch.Tensor) -> Any:
        """The handle of the tensor's storage; None when it is not in the book."""
        entry = self._live.get(id(tensor.untyped_storage()))
        return None if entry is None else entry[1]

    def enter(self, tensor: torch.Tensor) -> None:
        """Enter a tensor's storage unless it is there."""
        if tensor.device.type not in self._device_types or tensor.layout != torch.strided:
            return
        storage = tensor.untyped_storage()
        key = id(storage)
        if key in self._live:
            return
        handle = self._on_birth(storage.nbytes(), tensor)
        # The Python object of a storage lives as long as the storage, so that its id is a key and its end is the end.
        self._live[key] = (weakref.ref(storage, lambda _, key=key: self._dead.append(key)), handle)

    def enter_new(self, outputs: Any, inputs: Any) -> None:
        """Enter the outputs' storages that no input lives on."""
        known: set[int] | None = None
        for tensor in tensors_in(outputs):
            if tensor.device.type not in self._device_types or tensor.layout != torch.strided:
                continue
            key = id(tensor.untyped_storage())
            if key in self._live:
                continue
            if known is None:
                known = {id(t.untyped_storage()) for t in tensors_in(inputs) if t.layout == torch.strided}
            if key not in known:
                self.enter(tensor)
