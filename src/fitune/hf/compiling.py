"""torch.compile beside a model: a compiled call of its forward pass, and the model itself left as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

BACKEND = "inductor"
"""Of torch.compile. "eager" and "aot_eager" need no compiler for C or Triton: they are for tests."""


def compiled_forward(model: nn.Module) -> Callable[..., Any]:
    """``model.forward``, compiled for every shape at once when it is first called.

    A function and no module: state dict, parameter names and whatever is saved are those of the model. The passes of a
    step differ in rows and length, so shapes are dynamic from the start; a single row is a graph of its own.
    """
    return torch.compile(model.forward, dynamic=True, backend=BACKEND)


def stop_compiling(model: nn.Module) -> bool:
    """Let whatever trains compiled in ``model`` go on as it is; False: nothing does."""
    stopped = False
    for module in model.modules():
        learner: Any = module
        if hasattr(learner, "run_uncompiled") and learner.compiled is not None:
            learner.run_uncompiled()
            stopped = True
    return stopped


def reason_of(error: BaseException) -> str:
    """The line of a compiler's error that says most: the first of the innermost cause."""
    inner: BaseException = error
    while (cause := inner.__cause__ or getattr(inner, "inner_exception", None)) is not None:
        inner = cause
    lines = [line.strip() for line in str(inner).splitlines() if line.strip()]
    return f"{type(inner).__name__}: {lines[0]}" if lines else type(inner).__name__
