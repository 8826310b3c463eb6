"""CUDA's rules for a step that runs on meta tensors, above autograd, so that it saves what CUDA would save.

Fused dropout with a byte mask; the attention kernel of the card; CUDA autocast's op lists with its cache of weight
casts; softmax in one kernel with its cast; older PyTorch's habits. Source of the autocast lists: pytorch/pytorch
``aten/src/ATen/autocast_mode.h``.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from fitune.memory.attention import attend, choose_kernel
from fitune.memory.semantics import Semantics

_aten: Any = torch.ops.aten
_nn: Any = vars(torch)["_C"]._nn

LOWER_PRECISION = frozenset(
    [
        "linear",
        "matmul",
        "__matmul__",
        "__rmatmul__",
        "mm",
        "mv",
        "addmm",
        "addmv",
        "addr",
        "bmm",
        "baddbmm",
        "addbmm",
        "einsum",
        "chain_matmul",
        "multi_dot",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_tbc",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "convolution",
        "_convolution",
        "prelu",
        "scaled_dot_product_attention",
        "linalg_vecdot",
        "linalg_multi_dot",
    ]
)
FULL_PRECISION = frozenset(
    [
        "acos",
        "asin",
        "cosh",
        "erfinv",
        "exp",
        "expm1",
        "log",
        "log10",
        "log2",
        "log1p",
        "reciprocal",
        "rsqrt",
        "sinh",
        "tan",
        "pow",
        "__pow__",
        "__rpow__",
        "softplus",
        "layer_norm",
        "native_layer_norm",
        "group_norm",
        "frobenius_norm",
        "nuclear_norm",
        "cosine_similarity",
        "poisson_nll_loss",
        "cosine_embedding_loss",
        "nll_loss",
        "nll_loss2d",
        "nll_loss_nd",
        "hinge_embedding_loss",
        "kl_div",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "mse_loss",
        "margin_ranking_loss",
        "multilabel_margin_loss",
        "soft_margin_loss",
        "triplet_margin_loss",
        "multi_margin_loss",
        "binary_cross_entropy_with_logits",
        "dist",
        "pdist",
        "cdist",
        "renorm",
        "logsumexp",
    ]
)
FULL_PRECISION_RESULT = frozenset(
    ["prod", "cumprod", "cumsum", "sum", "linalg_vector_norm", "linalg_matrix_norm", "norm"]
)
WIDEST = frozenset(
    [
        "cat",
        "concat",
        "concatenate",
        "stack",
        "addcdiv",
        "addcmul",
        "atan2",
        "bilinear",
        "cross",
        "dot",
        "vdot",
        "grid_sampler",
        "index_put",
        "tensordot",
        "scatter_add",
    ]
)
_HALF = (torch.float16, torch.bfloat16)


class _SoftmaxKeepingInput(torch.autograd.Function):
    """softmax of PyTorch 1.10 and earlier: input and result are saved."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, dim: int, to_float: bool) -> torch.Tensor:
        result = _aten._softmax(x, dim, to_float)
        ctx.save_for_backward(x, result)
        ctx.dim = dim
        return result

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        x, result = ctx.saved_tensors
        return _aten._softmax_backward_data(grads[0], result, ctx.dim, x.dtype), None, None


class CudaRules(TorchFunctionMode):
    """Rewrites the calls whose memory differs on CUDA. Autocast is taken from ``torch.autocast("cpu")``'s switch, which
    has no effect of its own on meta tensors and which activation checkpointing carries into its recomputation.
    """

    def __init__(self, semantics: Semantics) -> None:
        super().__init__()
        self.semantics = semantics
        self._casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._truth: dict[int, tuple[weakref.ref[torch.Tensor], bool]] = {}

    def clear_casts(self) -> None:
        """Leaving the outermost autocast region drops the cached weight casts."""
        self._casts.clear()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return func(*args, **kwargs)
        if name in _READS and args and args[0].device.type == "meta":
            return self._value(args[0])
        if name in _TRUTHS:
            return self._remember(name, args, func(*args, **kwargs))
        if not self.semantics.cuda:
            if name == "scaled_dot_product_attention":
                return self._attention_on_cpu(*args, **kwargs)
            return func(*args, **kwargs)
        if torch.is_autocast_enabled("cpu"):
            dtype = torch.get_autocast_dtype("cpu")
            args, kwargs = self._autocast(name, args, kwargs, dtype)
        handler = getattr(self, f"_{name}", None) if name in _HANDLED else None
        if handler is None:
            return func(*args, **kwargs)
        return handler(func, *args, **kwargs)

    def _autocast(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if name in LOWER_PRECISION:
            wanted = dtype
        elif name in FULL_PRECISION:
            wanted = torch.float32
        elif name in WIDEST:
            wanted = _widest((args, kwargs))
        elif name in FULL_PRECISION_RESULT and kwargs.get("dtype") is None and _is_half(args[0]):
            return args, {**kwargs, "dtype": torch.float32}
        else:
            return args, kwargs
        return self._cast(args, wanted), self._cast(kwargs, wanted)

    # Ops with rules of their own -----------------------------------------------------------------------------------

    def _dropout(self, func: Callable[..., Any], x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
        if not train or p == 0:
            return func(x, p, train)
        return torch.native_dropout(x, p, True)[0]

    def _softmax(
        self, func: Callable[..., Any], x: torch.Tensor, dim: int, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        x, to_float = _prepared(x, dtype)
        if self.semantics.softmax_keeps_input:
            return _SoftmaxKeepingInput.apply(x, dim, to_float)  # type: ignore[no-any-return]
        return _aten._softmax(x, dim, to_float)

    def _log_softmax(
        self, func: Callable[..., Any], x: torch.Tensor, dim: int, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        x, to_float = _prepared(x, dtype)
        return _aten._log_softmax(x, dim, to_float)

    def _cross_entropy_loss(
        self,
        func: Callable[..., Any],
        x: torch.Tensor,
        target: torch.Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> torch.Tensor:
        # Under autocast the composite's own log_softmax is cast, not its input.
        plain = target.dtype == torch.long and not (len(args) > 3 and args[3]) and not kwargs.get("label_smoothing")
        if torch.is_autocast_enabled("cpu") and _is_half(x) and plain:
            weight, reduction, ignore = (*args, *(None, 1, -100)[len(args) :])[:3]
            return _nn.nll_loss_nd(self._log_softmax(func, x, 1), target, weight, reduction, ignore)
        return func(x, target, *args, **kwargs)

    def _scaled_dot_product_attention(
        self,
        func: Callable[..., Any],
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        kernel = choose_kernel(
            self.semantics.compute_capability,
            query.dtype,
            masked=attn_mask is not None,
            dropout=dropout_p,
            head_dim=query.size(-1),
            trained=torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad),
            torch_version=self.semantics.torch_version,
        )
        grouped = enable_gqa and key.size(-3) != query.size(-3)
        return attend(kernel, query, key, value, attn_mask, dropout_p, is_causal, scale, grouped)

    def _attention_on_cpu(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """The CPU's fused kernel knows no dropout; with it, and for grouped heads, the math path is taken."""
        if dropout_p > 0 or enable_gqa:
            return _aten._scaled_dot_product_attention_math(
                query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )[0]
        return attend("cpu", query, key, value, attn_mask, dropout_p, is_causal, scale, False)

    # Values that the step reads --------------------------------------------------------------------------------------

    def _value(self, x: torch.Tensor) -> Any:
        """What a meta tensor "holds" when the step asks.

        A boolean that comes from a test for finite values says that they are finite; any other is taken for a mask and
        says whether the batch has no padding; a float (a loss to log, a norm) is 1. An integer may decide a
        shape: it is ``Semantics.read_integer`` or refused.
        """
        if x.dtype == torch.bool:
            known = self._known(x)
            return not self.semantics.padded if known is None else known
        if x.is_floating_point() and x.numel() == 1:
            return 1.0
        if not x.is_floating_point() and x.numel() == 1 and self.semantics.read_integer is not None:
            return self.semantics.read_integer
        raise DataDependent(f"the step reads the value of a tensor of {tuple(x.shape)} {x.dtype}")

    def _known(self, x: Any) -> bool | None:
        reference, value = self._truth.get(id(x), (None, None))
        return value if reference is not None and reference() is x else None

    def _remember(self, name: str, args: tuple[Any, ...], result: Any) -> Any:
        """Numbers are finite in a simulation: follow that through all, any and not."""
        value = _TRUTHS[name]
        if value is None and args:
            value = self._known(args[0])
            if value is not None and name in ("logical_not", "__invert__"):
                value = not value
        if value is not None and isinstance(result, torch.Tensor):
            self._truth[id(result)] = (weakref.ref(result), value)
        return result

    # Casts -----------------------------------------------------------------------------------------------------------

    def _cast(self, value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, torch.Tensor):
            return self._cast_tensor(value, dtype)
        if isinstance(value, (list, tuple)):
            return type(value)(self._cast(item, dtype) for item in value)
        if isinstance(value, dict):
            return {key: self._cast(item, dtype) for key, item in value.items()}
        return value

    def _cast_tensor(self, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if x.dtype == dtype or not x.is_floating_point() or x.dtype == torch.float64 or x.device.type != "meta":
            return x
        if dtype in _HALF and x.dtype == torch.float32 and x.requires_grad and x.is_leaf and not x._is_view():
            known = self._casts.get(id(x))
            if known is None:
                known = self._casts[id(x)] = (x, x.to(dtype))
            return known[1]
        return x.to(dtype)


class DataDependent(Exception):
    """The step decides by a value that only a real run has."""


_READS = frozenset(("__bool__", "__float__", "__index__", "__int__", "item", "tolist"))
_TRUTHS: dict[str, bool | None] = {
    **{"isfinite": True, "isnan": False, "isinf": False},
    **dict.fromkeys(("all", "any", "logical_not", "__invert__")),
}
"""What a test says of finite values; None: what its input says."""
_HANDLED = frozenset(["dropout", "softmax", "log_softmax", "cross_entropy_loss", "scaled_dot_product_attention"])


def _prepared(x: torch.Tensor, dtype: torch.dtype | None) -> tuple[torch.Tensor, bool]:
    """The input of CUDA's softmax kernel, and whether the kernel casts by itself: from fp16 to fp32 it does."""
    if dtype is None and torch.is_autocast_enabled("cpu") and _is_half(x):
        dtype = torch.float32
    if x.dtype == torch.float16 and dtype == torch.float32:
        return x, True
    return (x if dtype is None or dtype == x.dtype else x.to(dtype)), False


def _is_half(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype in _HALF


def _widest(value: Any) -> torch.dtype:
    from fitune.memory.storages import tensors_in

    return (
        torch.float32 if any(t.dtype == torch.float32 for t in tensors_in(value)) else torch.get_autocast_dtype("cpu")
    )
