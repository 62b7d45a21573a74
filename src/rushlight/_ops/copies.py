"""The *_copy forms: what the view would show, in memory of its own."""

from __future__ import annotations

from collections.abc import Sequence

from .. import _C
from .._C import Tensor
from .._core.compose import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


_VIEWS = (
    "alias",
    "as_strided",
    "detach",
    "diagonal",
    "expand",
    "permute",
    "select",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
    "view_as_complex",
    "view_as_real",
)


def _own(x):
    return x.clone(memory_format=_C.contiguous_format)


def _define(name):
    def copied(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        f = _C.ops.get(name) or getattr(Tensor, name)
        result = f(input, *args, **kwargs)
        return tuple(map(_own, result)) if isinstance(result, tuple) else _own(result)

    copied.__name__ = copied.__qualname__ = name + "_copy"
    copied.__doc__ = f"A copy of what {name} would show."
    op(copied, out=True, differentiable=name != "detach")


for _name in _VIEWS:
    _define(_name)


def _define_part(name):
    def copied(input):
        return _own(getattr(input, name)())

    copied.__name__ = copied.__qualname__ = name + "_copy"
    copied.__doc__ = f"A copy of the {name} of a sparse tensor."
    op(copied, out=True)


for _name in (
    "indices",
    "values",
    "crow_indices",
    "col_indices",
    "ccol_indices",
    "row_indices",
    "_indices",
    "_values",
):
    _define_part(_name)


@op(out=True)
def _conj_copy(input: Tensor) -> Tensor:
    """The conjugate in memory of its own."""
    return _own(input.conj().resolve_conj())


@op(out=True)
def _neg_view_copy(input: Tensor) -> Tensor:
    """The negative in memory of its own."""
    return -input


@op(out=True)
def _reshape_alias_copy(input: Tensor, size: int | Sequence[int], stride: int | Sequence[int]) -> Tensor:
    """A copy of the elements with these sizes and steps in memory."""
    return _own(input.as_strided(size, stride, input.storage_offset()))


@op(method=True)
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The view with the geometry of `src`, of which this tensor is a slice in the same memory.

    Args:
        input (Tensor): the slice.
        src (Tensor): whose geometry is taken.
        dim (int): the dimension of the slice. Default: 0
        start (int): where it begins. Default: None
        end (int): where it ends. Default: None
        step (int): its step. Default: 1

    Example:
        >>> x = torch.arange(4)
        >>> x[1:3].slice_inverse(x, 0, 1, 3)
        tensor([0, 1, 2, 3])
    """
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


@op(method=True, out=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of a range of a dimension.

    Args:
        input (Tensor): what is copied.
        dim (int): the dimension.
        start (int): where it begins.
        length (int): how long it is.

    Example:
        >>> torch.arange(4).narrow_copy(0, 1, 2)
        tensor([1, 2])
    """
    if dim >= input.dim():
        raise RuntimeError(f"narrow_copy: expected dim to be less than {input.dim()}, got {dim}")
    return _own(input.narrow(dim, start, length))


@op(out=True)
def slice_copy(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of every step-th index of a dimension."""
    return _own(input.movedim(dim, 0)[slice(start, end, step)].movedim(0, dim))
