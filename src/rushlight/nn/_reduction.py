"""The reduction of losses: names, the integers the core knows them by, and the old pair of flags."""

from __future__ import annotations

import warnings

from rushlight._C import Tensor

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """0, 1 or 2 for 'none', 'mean' or 'sum'."""
    number = _NUMBERS.get(reduction)
    if number is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3
        )
    return number


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that the old flags size_average and reduce mean."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    result = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{result}' instead.",
            stacklevel=3,
        )
    return result


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that the old flags mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def apply(loss: Tensor, reduction: str) -> Tensor:
    """Reduces a loss per element."""
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    return loss.mean() if get_enum(reduction) == 1 else loss.sum()
