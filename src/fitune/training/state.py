"""What a run goes on from, bit for bit on a CPU: taken from a Trainer, and put back into one.

Weights, optimizer state by parameter name, scheduler, generators, position in the data (the order is a function of seed
and epoch), early stopping, loss scale and the micro-batch budget. Nothing is pickled.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fitune.checkpoint import Array, Checkpoint
from fitune.hf import stop_compiling
from fitune.messages import _
from fitune.training.callbacks import BestModel
from fitune.values import Refusal

_TYPES: dict[torch.dtype, str] = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def array_of(host: Tensor) -> Array:
    """A contiguous tensor on the host as bytes; they are the tensor's own."""
    data = memoryview(host.reshape(-1).view(torch.uint8).numpy()) if host.numel() else memoryview(b"")  # pyright: ignore[reportArgumentType]
    return Array(_TYPES[host.dtype], tuple(host.shape), data)


def tensors_of(trainer: Any) -> dict[str, Tensor]:
    """Weights, optimizer state and generators of a Trainer, by name; nothing is copied."""
    tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    for name, values in _optimizer_state(trainer).items():
        tensors |= {f"optimizer.{name}.{k}": v for k, v in values.items() if isinstance(v, Tensor)}
    tensors["random.torch"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()
    return tensors


def state_of(trainer: Any, best: BestModel, facts: dict[str, Any]) -> dict[str, Any]:
    """All else that a run goes on from, as JSON."""
    optimizer = _inner(trainer.optimizer)
    kind, keys, *rest = np.random.get_state()
    python_version, python_values, gauss = random.getstate()
    return {
        "trainer": json.loads(json.dumps(_trainer_state(trainer.state))),
        "optimizer": {
            name: {k: v for k, v in values.items() if not isinstance(v, Tensor)}
            for name, values in _optimizer_state(trainer).items()
        },
        "groups": [_plain({k: v for k, v in group.items() if k != "params"}) for group in optimizer.param_groups],
        "scheduler": _plain(trainer.lr_scheduler.state_dict()),
        "random": {
            "python": [python_version, list(python_values), gauss],
            "numpy": [kind, np.asarray(keys).tolist(), *rest],
        },
        "best": {
            "value": best.best_value,
            "step": best.best_step,
            "metrics": best.best_metrics,
            "without_gain": best.without_gain,
            "stopped_early": best.stopped_early,
        },
        "loss_scale": [trainer.loss_scale, trainer._good_steps],
        "precision": getattr(trainer.model, "precision", ""),
        "compiled": getattr(trainer.model, "compiled", None) is not None,
        "stepper": trainer._stepper.state() if trainer._stepper is not None else None,
        "facts": facts,
    }


def _inner(optimizer: Any) -> Any:
    return getattr(optimizer, "optimizer", optimizer)


def _names(trainer: Any) -> dict[Any, str]:
    model: nn.Module = trainer.model
    return {parameter: name for name, parameter in model.named_parameters()}


def _optimizer_state(trainer: Any) -> dict[str, dict[str, Any]]:
    names = _names(trainer)
    return {names[parameter]: values for parameter, values in _inner(trainer.optimizer).state.items()}


def _trainer_state(state: Any) -> dict[str, Any]:
    kept = ("epoch", "global_step", "max_steps", "num_train_epochs", "train_batch_size", "num_input_tokens_seen")
    return {name: getattr(state, name) for name in (*kept, "total_flos", "logging_steps", "eval_steps", "save_steps")}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """What of a dict is JSON; functions and the like are made anew by the code that made them."""
    return {k: v for k, v in values.items() if _is_plain(v)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, bool | int | float | str)


def _tensor(array: Array) -> Tensor:
    dtype = next(dtype for dtype, name in _TYPES.items() if name == array.dtype)
    if not array.nbytes:
        return torch.empty(array.shape, dtype=dtype)
    return torch.frombuffer(bytearray(array.data), dtype=dtype).reshape(array.shape)


def restore_model(trainer: Any, checkpoint: Checkpoint) -> None:
    """Weights, loss scale, precision, compiled or not, and the micro-batch budget."""
    prefix = "model."
    values = {n.removeprefix(prefix): _tensor(a) for n, a in checkpoint.arrays.items() if n.startswith(prefix)}
    trainer.model.load_state_dict(values)
    trainer.loss_scale, trainer._good_steps = checkpoint.state["loss_scale"]
    if checkpoint.state["precision"]:
        trainer.model.precision = checkpoint.state["precision"]
    if not checkpoint.state.get("compiled", True):
        stop_compiling(trainer.model)  # it was given up after the run had begun with it
    if checkpoint.state["stepper"] is not None:
        trainer.stepper(trainer.model).load_state(checkpoint.state["stepper"])


def restore_optimizer(trainer: Any, checkpoint: Checkpoint) -> None:
    """By parameter name; refuses where a name is missing on either side."""
    optimizer, names = _inner(trainer.optimizer), _names(trainer)
    trained = {names[p]: p for group in optimizer.param_groups for p in group["params"]}
    saved = checkpoint.state["optimizer"]
    if unknown := sorted(saved.keys() - trained.keys()):
        raise Refusal(
            _(
                "the checkpoint has optimizer state for parameters that are not trained now: {names}",
                names=", ".join(unknown[:5]),
            ),
            where=str(checkpoint.path),
            next_step=_("Train with the same model and settings, or add --fresh."),
            code="FT604",
        )
    fused = {id(p): bool(g.get("fused") or g.get("capturable")) for g in optimizer.param_groups for p in g["params"]}
    for name, values in saved.items():
        parameter = trained[name]
        state: dict[str, Any] = dict(values)
        prefix = f"optimizer.{name}."
        for full, array in checkpoint.arrays.items():
            if full.startswith(prefix) and "." not in (key := full.removeprefix(prefix)):
                on_host = key == "step" and not fused[id(parameter)]
                state[key] = _tensor(array) if on_host else _tensor(array).to(parameter.device)
        optimizer.state[parameter] = state
    for group, kept in zip(optimizer.param_groups, checkpoint.state["groups"], strict=True):
        # The implementation (fused, foreach) is a memory choice: the one of today stays.
        group.update({k: _as(group.get(k), v) for k, v in kept.items() if k not in ("fused", "foreach", "capturable")})
    trainer.lr_scheduler.load_state_dict({**trainer.lr_scheduler.state_dict(), **checkpoint.state["scheduler"]})


def _as(like: Any, value: Any) -> Any:
    return tuple(value) if isinstance(like, tuple) else value


def restore_random(checkpoint: Checkpoint) -> None:
    """Set Python's, NumPy's, torch's and the device's generators to where they were."""
    version, values, gauss = checkpoint.state["random"]["python"]
    random.setstate((version, tuple(values), gauss))
    kind, keys, *rest = checkpoint.state["random"]["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(_tensor(checkpoint.arrays["random.torch"]))
    if "random.cuda" in checkpoint.arrays and torch.cuda.is_available():
        torch.cuda.set_rng_state(_tensor(checkpoint.arrays["random.cuda"]))


def restore_best(best: BestModel, kept: dict[str, Any]) -> None:
    """What early stopping knows."""
    best.best_value, best.best_step, best.best_metrics = kept["value"], kept["step"], kept["metrics"]
    best.without_gain, best.stopped_early = kept["without_gain"], kept["stopped_early"]
