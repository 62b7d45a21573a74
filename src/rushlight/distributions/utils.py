"""Helpers shared by the distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, TypeVar, overload

from typing_extensions import TypeIs

import rushlight as rl

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

_V = TypeVar("_V")

euler_constant = 0.57721566490153286060


def like(tensor: rl.Tensor) -> dict[str, Any]:
    """The options that make a new tensor of the same type on the same device."""
    return {"dtype": tensor.dtype, "device": tensor.device}


def enumerated(values: Any, batch_shape: Sequence[int], expand: bool) -> Any:
    """All values (n, *event) of a distribution, along a first dimension before its batch."""
    n, *event = values.shape
    values = values.reshape(n, *[1] * len(batch_shape), *event)
    return values.expand(n, *batch_shape, *event) if expand else values


def is_number(value: object) -> TypeIs[float]:
    return isinstance(value, (int, float, complex)) or type(value).__module__ == "numpy"


def _standard_normal(
    shape: Sequence[int], dtype: rl.dtype | None, device: rl.device | str | int | None
) -> rl.Tensor:
    return rl.normal(rl.zeros(shape, dtype=dtype, device=device), rl.ones(shape, dtype=dtype, device=device))


def broadcast_all(*values: Any) -> tuple[rl.Tensor, ...]:
    """The values as tensors of one shape; Python scalars take the dtype and device of the tensors among them."""
    if not all(
        isinstance(v, rl.Tensor) or hasattr(type(v), "__torch_function__") or is_number(v) for v in values
    ):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    if not all(isinstance(v, rl.Tensor) for v in values):
        options = {"dtype": rl.get_default_dtype()}
        for v in values:
            if isinstance(v, rl.Tensor):
                options = {"dtype": v.dtype, "device": v.device}
                break
        values = [v if isinstance(v, rl.Tensor) else rl.tensor(v, **options) for v in values]
    return rl.broadcast_tensors(*values)


def clamp_probs(probs: rl.Tensor) -> rl.Tensor:
    """Away from 0 and 1 by the precision of the dtype, so that logarithms stay finite."""
    eps = rl.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: rl.Tensor, is_binary: bool = False) -> rl.Tensor:
    return rl.sigmoid(logits) if is_binary else rl.softmax(logits, dim=-1)


def probs_to_logits(probs: rl.Tensor, is_binary: bool = False) -> rl.Tensor:
    clamped = clamp_probs(probs)
    return rl.log(clamped) - rl.log1p(-clamped) if is_binary else rl.log(clamped)


def xlogy(x: rl.Tensor, y: rl.Tensor) -> rl.Tensor:
    """x * log(y), and 0 where x is 0."""
    return rl.xlogy(x, y)


class lazy_property(Generic[_V]):
    """An attribute computed at first use and then kept in the instance."""

    def __init__(self, wrapped: Callable[[Any], _V], name: str | None = None) -> None:
        self.wrapped = wrapped
        self.__doc__, self.__name__ = wrapped.__doc__, name or wrapped.__name__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> _V: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with rl.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.__name__, value)
        return value


def tril_matrix_to_vec(mat: rl.Tensor, diag: int = 0) -> rl.Tensor:
    """The lower triangle (up to diagonal `diag`) of each matrix, row by row, as a vector."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows = rl.arange(n, device=mat.device)
    mask = rows.unsqueeze(0) < rows.unsqueeze(1) + (diag + 1)
    return mat[..., mask]


def vec_to_tril_matrix(vec: rl.Tensor, diag: int = 0) -> rl.Tensor:
    """The inverse of tril_matrix_to_vec; zeros elsewhere."""
    count = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if abs(round(n) - n) > rl.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part "
            "of a square D x D matrix."
        )
    n = round(n)
    rows = rl.arange(n, device=vec.device)
    mask = rows.unsqueeze(0) < rows.unsqueeze(1) + (diag + 1)
    # position of each matrix entry in the vector; entries above the triangle point at an extra zero
    index = rl.where(mask, mask.reshape(-1).long().cumsum(0).reshape(n, n) - 1, count)
    padded = rl.cat([vec, vec.new_zeros(tuple(vec.shape[:-1]) + (1,))], -1)
    return padded[..., index.reshape(-1)].reshape(tuple(vec.shape[:-1]) + (n, n))


def _sum_rightmost(value: rl.Tensor, dim: int) -> rl.Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)
