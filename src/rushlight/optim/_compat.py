"""Private names of torch.optim.optimizer that optimizers published elsewhere import."""

from __future__ import annotations

import functools
import math

import rushlight as rl
from rushlight.optim._stepwise import number, step_dtype
from rushlight.optim.optimizer import _global_post_hooks, _global_pre_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from rushlight._C import Tensor, dtype
    from rushlight.optim.optimizer import Optimizer

    _F = TypeVar("_F", bound=Callable[..., Any])


__all__ = [
    "ParamsT",
    "StateDict",
    "_capturable_doc",
    "_default_to_fused_or_foreach",
    "_device_dtype_check_for_fused",
    "_differentiable_doc",
    "_disable_dynamo_if_unsupported",
    "_dispatch_sqrt",
    "_foreach_doc",
    "_fused_doc",
    "_get_capturable_supported_devices",
    "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices",
    "_get_scalar_dtype",
    "_get_value",
    "_global_optimizer_post_hooks",
    "_global_optimizer_pre_hooks",
    "_maximize_doc",
    "_params_doc",
    "_stack_if_compiling",
    "_to_scalar",
    "_use_grad_for_differentiable",
    "_view_as_real",
    "params_t",
]

ParamsT = params_t = StateDict = object
_params_doc = "params: the tensors to optimize, or dicts that define parameter groups"
_foreach_doc = "foreach: accepted; every step runs as one multi-tensor operation"
_fused_doc = "fused: accepted; every step is fused"
_capturable_doc = "capturable: accepted; there are no device graphs to capture"
_differentiable_doc = "differentiable: whether gradients flow through the step"
_maximize_doc = "maximize: go up the gradient instead of down"
_global_optimizer_pre_hooks = _global_pre_hooks
_global_optimizer_post_hooks = _global_post_hooks


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with rl.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: float | Tensor) -> float:
    return x.item() if isinstance(x, rl.Tensor) else x


_to_scalar = number


def _dispatch_sqrt(x: float | Tensor) -> float | Tensor:
    return x.sqrt() if isinstance(x, rl.Tensor) else math.sqrt(x)


def _stack_if_compiling(x: Any) -> Any:
    return x


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    return False, False


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    if not p.is_floating_point():
        raise RuntimeError(f"`fused=True` requires floating point params, but got {p.dtype}")


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = rl.view_as_real(p)
            for tensors in state_and_grads:
                tensors[i] = rl.view_as_real(tensors[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> dtype:
    return step_dtype(is_fused)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda", "xpu", "hpu"] + (["xla"] if supports_xla else [])


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cpu", "cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu", "cuda"]


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable[..., Any] | None = None) -> Callable[[_F], _F]:
    return lambda func: func
