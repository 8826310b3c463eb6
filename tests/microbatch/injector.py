"""Out-of-memory at the k-th allocation, and a count of the bytes that live tensors hold."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


def allocates(func):
    """Whether the operator returns a tensor that aliases none of its arguments."""
    return any(r.alias_info is None and "Tensor" in str(r.type) for r in func._schema.returns)


class Card(TorchDispatchMode):
    """Raises at allocations number ``fail_at`` (counted from 0; one or several), once each; tracks live bytes.

    ``fail_if``: called with the bytes an operator returned; True frees them again and raises.
    """

    def __init__(self, fail_at=(), capacity_bytes=None):
        super().__init__()
        self.fail_at = {fail_at} if isinstance(fail_at, int) else set(fail_at)
        self.capacity_bytes = capacity_bytes
        self.allocations = self.failures = 0
        self.storages = {}

    def live_bytes(self):
        self.storages = {k: v for k, v in self.storages.items() if not v[0].expired()}
        return sum(size for _, size in self.storages.values())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not allocates(func):
            return func(*args, **(kwargs or {}))
        number, self.allocations = self.allocations, self.allocations + 1
        if number in self.fail_at:
            self.fail("20.00 MiB")
        out = func(*args, **(kwargs or {}))
        for leaf in tree_flatten(out)[0]:
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                self.storages[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        if self.capacity_bytes is not None and self.live_bytes() > self.capacity_bytes:
            del out, leaf, storage
            self.fail("1.00 MiB")
        return out

    def fail(self, size):
        self.failures += 1
        raise torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {size}. GPU 0 has a total capacity of 10.75 GiB of which 8.69 MiB"
            " is free. Including non-PyTorch memory, this process has 10.73 GiB memory in use."
        )
