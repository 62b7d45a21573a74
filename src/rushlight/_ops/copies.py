"""The *_copy forms: what the view would show, in memory of its own."""

from .. import _C
from .._C import Tensor
from .._compose import op

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
    def copied(input, *args, **kwargs):
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
def _conj_copy(input):
    """The conjugate in memory of its own."""
    return _own(input.conj().resolve_conj())


@op(out=True)
def _neg_view_copy(input):
    """The negative in memory of its own."""
    return -input


@op(out=True)
def _reshape_alias_copy(input, size, stride):
    """A copy of the elements with these sizes and steps in memory."""
    return _own(input.as_strided(size, stride, input.storage_offset()))


@op(method=True)
def slice_inverse(input, src, dim=0, start=None, end=None, step=1):
    """The view with the geometry of `src`, of which input is a slice in the same memory."""
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


@op(method=True, out=True)
def narrow_copy(input, dim, start, length):
    """A copy of a range of a dimension."""
    if dim >= input.dim():
        raise RuntimeError(f"narrow_copy: expected dim to be less than {input.dim()}, got {dim}")
    return _own(input.narrow(dim, start, length))


@op(out=True)
def slice_copy(input, dim=0, start=None, end=None, step=1):
    """A copy of every step-th index of a dimension."""
    return _own(input.movedim(dim, 0)[slice(start, end, step)].movedim(0, dim))
