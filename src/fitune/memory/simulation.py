"""simulate: run a training step without memory, under CUDA's rules, and learn what it would have taken."""

import copy
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import torch
import torch.functional
import torch.nn.functional as F

from fitune.memory.rules import CudaRules
from fitune.memory.semantics import Semantics
from fitune.memory.trace import Trace
from fitune.memory.tracer import Tracer

_only_one = threading.RLock()
_Model = TypeVar("_Model", bound=torch.nn.Module)


def simulate(
    step: Callable[[], object],
    *,
    resident: Iterable[torch.nn.Module | torch.Tensor] = (),
    steps: int = 3,
    semantics: Semantics | None = None,
) -> Trace:
    """Run ``step`` a few times on meta tensors and return the Trace. Nothing is computed, no memory is taken.

    ``step`` is one optimizer step of any kind (forward, loss, backward, clip, optimizer, zero_grad) on a model that
    lives on the meta device (``shadow(model)`` makes such a twin). ``resident``: modules and tensors that are there
    before the first step. The second step is the first with optimizer state, so at least two are needed.
    Raises ``rules.DataDependent`` when the step decides by a value that only a real run has.
    """
    semantics = semantics or Semantics()
    # meta only: the few tensors that a step keeps on the host (AdamW's step counts) are not on the card.
    tracer = Tracer(semantics, ("meta",))
    with _only_one, _as_on_cuda(semantics) as rules, ExitStack() as stack:
        tracer.adopt(resident)
        stack.enter_context(rules)
        stack.enter_context(tracer.watching())
        for number in range(steps):
            tracer.begin_step(last=number == steps - 1)
            step()
        tracer.finish()
    return tracer.trace


def shadow(model: _Model) -> _Model:
    """A twin of ``model`` on the meta device: same modules, no data. The model itself is left alone."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        twin = torch.nn.Parameter(torch.empty_like(parameter, device="meta"), parameter.requires_grad)
        memo[id(parameter)] = twin
    for buffer in model.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    return copy.deepcopy(model, memo)


@contextmanager
def _as_on_cuda(semantics: Semantics) -> Generator[CudaRules]:
    """PyTorch's own switches, for as long as the simulation runs: what it would do if the tensors were on a card."""
    import torch.fx.experimental._config as data_dependence
    import torch.optim.optimizer as optimizer
    import torch.utils._foreach_utils as foreach

    rules = CudaRules(semantics)
    with ExitStack() as stack:

        def swap(owner: Any, name: str, value: Any) -> None:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)

        def cuda_kernels() -> list[str]:
            return ["meta", "cuda"]

        # A mask selects everything: the most that it can.
        swap(data_dependence, "meta_nonzero_assume_all_nonzero", True)
        if semantics.cuda:
            for owner in (optimizer, foreach):
                swap(owner, "_get_foreach_kernels_supported_devices", cuda_kernels)
                swap(owner, "_get_fused_kernels_supported_devices", cuda_kernels)
        # The Python shells of torch.nn.functional and Tensor would hand themselves to the rules and hide what they
        # call.
        for owner in (F, vars(torch)["_tensor"], torch.functional, torch.autograd):
            for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
                if hasattr(owner, name):
                    swap(owner, name, _never)
        swap(torch.amp.autocast_mode.autocast, "__init__", _cpu_switch(torch.amp.autocast_mode.autocast.__init__))
        clear = torch.clear_autocast_cache

        def clear_both() -> None:
            clear()
            rules.clear_casts()

        swap(torch, "clear_autocast_cache", clear_both)
        module_of = torch.get_device_module

        def module_or_host(device: Any = None) -> Any:
            """torch has no module for meta: a step that asks (for its random state) is given the host's."""
            on_meta = device is not None and torch.device(device).type == "meta"
            return torch.cpu if on_meta else module_of(device)

        swap(torch, "get_device_module", module_or_host)
        yield rules


def _never(*_: object) -> bool:
    return False


def _cpu_switch(original: Callable[..., None]) -> Callable[..., None]:
    """``torch.autocast("cuda")`` throws the switch that the rules read."""

    def __init__(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type in ("cuda", "meta") and not args and kwargs.get("dtype") is None:
            kwargs["dtype"] = torch.float16
        original(self, "cpu" if device_type in ("cuda", "meta") else device_type, *args, **kwargs)

    return __init__
