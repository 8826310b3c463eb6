"""Tracer: a dispatch mode that writes a Trace of everything that runs below autograd, with the module that made it."""

from bisect import bisect_right
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.nn.modules import module as hooks
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from fitune.memory.semantics import Semantics, workspace_bytes
from fitune.memory.storages import StorageBook, tensors_in
from fitune.memory.temporaries import GEMMS, TEMPORARIES
from fitune.memory.trace import Op, Storage, Trace

_autograd: Any = torch.autograd
_core: Any = vars(torch)["_C"]
_DTYPES: dict[torch.dtype, str] = {}


class Tracer(TorchDispatchMode):
    """Enter it around the steps; ``trace`` grows. Call ``begin_step`` before each step."""

    def __init__(self, semantics: Semantics, device_types: Iterable[str]) -> None:
        super().__init__()
        self.trace = Trace(semantics)
        self._book = StorageBook(self._birth, self._death, device_types)
        self._op, self._phase_now = "resident", "resident"
        self._in_optimizer = False
        self._path: list[str] = []
        self._names: dict[int, str] = {}
        self._node_starts: list[int] = [0]
        self._node_paths: list[str] = [""]
        self._workspaces: set[bool] = set()
        self._watch_ops = False
        self._op_names: dict[Any, str] = {}

    def adopt(self, things: Iterable[torch.nn.Module | torch.Tensor]) -> None:
        """Enter what is there before the first step: parameters, buffers, gradients, tensors."""
        for thing in things:
            if isinstance(thing, torch.nn.Module):
                for name, module in thing.named_modules():
                    self._names[id(module)] = name or type(module).__name__
                tensors = [*thing.named_parameters(), *thing.named_buffers()]
                tensors += [(n + ".grad", p.grad) for n, p in thing.named_parameters() if p.grad is not None]
            else:
                tensors = [("input", thing)]
            for name, tensor in tensors:
                self._path = [name]
                self._book.enter(tensor)
        self._path = []

    def begin_step(self, *, last: bool) -> None:
        """Mark the start of a step; ops are kept for the last one only."""
        self._settle()
        self.trace.steps.append(len(self.trace.events))
        self._watch_ops = last

    def finish(self) -> None:
        """Enter the deaths since the last op."""
        self._settle()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Module and optimizer hooks, and the mode itself."""
        with ExitStack() as stack:
            pre = hooks.register_module_forward_pre_hook(self._push)
            post = hooks.register_module_forward_hook(self._pop, always_call=True)
            begin = register_optimizer_step_pre_hook(self._begin_optimizer)
            end = register_optimizer_step_post_hook(self._end_optimizer)
            for handle in (pre, post, begin, end):
                stack.callback(handle.remove)
            stack.enter_context(self)
            yield

    # Where we are ----------------------------------------------------------------------------------------------------

    def _begin_optimizer(self, *_: Any) -> None:
        self._in_optimizer = True

    def _end_optimizer(self, *_: Any) -> None:
        self._in_optimizer = False

    def _push(self, module: torch.nn.Module, _: Any) -> None:
        self._path.append(self._names.get(id(module)) or type(module).__name__)
        self._note_path()

    def _pop(self, *_: Any) -> None:
        if self._path:
            self._path.pop()
        self._note_path()

    def _note_path(self) -> None:
        """Autograd numbers its nodes upwards: later, a node's number tells which module made it."""
        number = _autograd._get_sequence_nr()
        path = self._path[-1] if self._path else ""
        if number == self._node_starts[-1]:
            self._node_paths[-1] = path
        elif number > self._node_starts[-1]:
            self._node_starts.append(number)
            self._node_paths.append(path)

    def _module(self) -> str:
        if self._path:
            return self._path[-1]
        node = _core._current_autograd_node()
        if node is None:
            return ""
        return self._node_paths[bisect_right(self._node_starts, node._sequence_nr()) - 1]

    def _phase(self) -> str:
        if self._in_optimizer:
            return "optimizer"
        return "forward" if _core._current_autograd_node() is None else "backward"

    # One op ----------------------------------------------------------------------------------------------------------

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = self._op_names.get(func)
        if name is None:
            name = self._op_names[func] = func.overloadpacket.__name__
        if name in GEMMS and self.trace.semantics.cuda:
            self._settle()
            self._workspace()
        outputs = func(*args, **kwargs)
        if name == "native_layer_norm" and not self.trace.semantics.cuda:
            outputs = _with_the_cpus_statistics(outputs, args)
        self._book.settle()
        self._op = name
        self._phase_now = ""
        self._book.enter_new(outputs, (args, kwargs))
        rule = TEMPORARIES.get(name)
        if rule is not None and self.trace.semantics.cuda:
            self._temporaries(rule(args))
        if self._watch_ops:
            self._note_op(func, name, args, kwargs, outputs)
        return outputs

    def _settle(self) -> None:
        self._book.settle()

    def _birth(self, size_bytes: int, tensor: torch.Tensor | None) -> int | None:
        if size_bytes == 0:
            return None
        if not self._phase_now:
            self._phase_now = self._phase()
        shape: tuple[int, ...] = () if tensor is None else tuple(tensor.shape)
        dtype = "uint8" if tensor is None else _dtype_name(tensor.dtype)
        number = len(self.trace.storages)
        self.trace.storages.append(Storage(size_bytes, self._op, self._module(), self._phase_now, shape, dtype))
        self.trace.events.append(number + 1)
        return number

    def _death(self, number: int | None) -> None:
        if number is not None:
            self.trace.events.append(-number - 1)

    def _temporaries(self, sizes: list[int]) -> None:
        numbers = [self._birth(size, None) for size in sizes]
        for number in reversed(numbers):
            self._death(number)

    def _workspace(self) -> None:
        """One for the thread that runs forward and optimizer, one for autograd's own thread."""
        backward = _core._current_autograd_node() is not None
        if backward in self._workspaces or not self.trace.semantics.workspace_in_allocator:
            return
        self._workspaces.add(backward)
        self._op, self._phase_now = "cublas workspace", "backward" if backward else "forward"
        number = self._birth(workspace_bytes(self.trace.semantics.compute_capability), None)
        if number is not None:
            self.trace.workspaces.append(number)

    def _note_op(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        made = list(tensors_in(outputs))
        if not made and not name.startswith("_foreach"):
            return
        counter = flop_registry.get(func.overloadpacket)
        flops = 0 if counter is None else int(counter(*args, **kwargs, out_val=outputs))
        moved = 0
        if not _is_view(func):
            read = list(tensors_in((args, kwargs)))
            moved = sum(t.numel() * t.element_size() for t in read) + sum(t.numel() * t.element_size() for t in made)
        dtype = _dtype_name(made[0].dtype) if made else "float32"
        self.trace.ops.append(Op(name, self._phase(), dtype, flops, moved))


def _with_the_cpus_statistics(outputs: Any, args: tuple[Any, ...]) -> Any:
    """The CPU keeps mean and deviation in the input's dtype (fp32 when the weights are), CUDA and meta in fp32."""
    x, weight = args[0], args[2]
    if x.dtype == outputs[1].dtype or (weight is not None and weight.dtype != x.dtype):
        return outputs
    return (outputs[0], *(torch.empty_like(part, dtype=x.dtype) for part in outputs[1:]))


def _dtype_name(dtype: torch.dtype) -> str:
    name = _DTYPES.get(dtype)
    if name is None:
        name = _DTYPES[dtype] = str(dtype).removeprefix("torch.")
    return name


_VIEWS: dict[Any, bool] = {}


def _is_view(func: Any) -> bool:
    known = _VIEWS.get(func)
    if known is None:
        returns = func._schema.returns
        known = _VIEWS[func] = bool(returns) and all(
            r.alias_info is not None and not r.alias_info.is_write for r in returns
        )
    return known
