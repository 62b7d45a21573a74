"""Functions and nodes under the private names that PyTorch has for them."""

from __future__ import annotations

from typing import Any

import rushlight as rl

from .. import _C
from .function import Function

_edge_of: Any = _C.ops["_gradient_edge"]
_empty: Any = _C.ops["empty"]
AccumulateGrad: Any = _edge_of(_empty(0).requires_grad_())[0].__class__


class Resize(Function):
    """x with other sizes, of as many elements."""

    @staticmethod
    def forward(ctx: Any, tensor: rl.Tensor, sizes: Any) -> rl.Tensor:
        ctx.sizes = tensor.size()
        if tensor.numel() != rl.Size(sizes).numel():
            raise RuntimeError(
                f"requested resize to {tuple(sizes)}, but the given tensor has a size of {tuple(tensor.size())}: their "
                "numbers of elements differ"
            )
        return tensor.contiguous().view(*sizes).clone()

    @staticmethod
    def backward(ctx: Any, grad_output: rl.Tensor) -> tuple[rl.Tensor, None]:
        return grad_output.contiguous().view(ctx.sizes), None


class _Undefined(Function):
    @staticmethod
    def forward(ctx: Any, x: rl.Tensor) -> rl.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> None:
        return None


class _NodeMeta(type):
    """issubclass(c, Node) holds, as it does for the classes of nodes."""

    __rl_node__ = True


class UndefinedGrad(metaclass=_NodeMeta):
    """UndefinedGrad()(x) is x, whose gradient is None."""

    def __call__(self, *tensors: Any) -> Any:
        found = tuple(_Undefined.apply(t) for t in tensors)
        return found[0] if len(found) == 1 else found


class DelayedError(metaclass=_NodeMeta):
    """DelayedError(message, n)(*tensors) is the tensors; a backward through them is an error."""

    def __init__(self, message: str, inputs: Any) -> None:
        self.message = message

    def __call__(self, *tensors: Any) -> Any:
        found = _C.ops["_fail_on_backward"](list(tensors), self.message)
        return found[0] if len(found) == 1 else tuple(found)
