"""Reductions and normalisations that leave out the elements where a mask is False.

Masked-out elements are replaced by the identity of the operation, so that all of these are compositions of
ordinary ops. A row without any element left gives the identity (sum 0, amax -inf), or NaN where there is none
(mean, var).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import rushlight as rl
from rushlight._core import type_info as _type_info
from rushlight._ops._arguments import wrap

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean",
    "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _with_own_mask(function):
    """Masked tensors bring their masks along."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if not any(hasattr(x, "_masked_mask") for x in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        given = dict(zip(function.__code__.co_varnames, args, strict=False)) | kwargs
        for name, mask in (("input", "mask"), ("input", "input_mask"), ("other", "other_mask")):
            x: Any = given.get(name)
            if hasattr(x, "_masked_mask") and mask in function.__kwdefaults__:
                own, more = x.get_mask(), given.get(mask)
                given[name], given[mask] = x.get_data(), own if more is None else own & more
        return function(**given)

    return wrapper


def _is_integral(dtype):
    return not (dtype.is_floating_point or dtype.is_complex)


def _wide(dtype, wanted):
    """The type sums and products are taken in."""
    return wanted or (rl.int64 if _is_integral(dtype) else dtype)


def _lowest(dtype):
    return -math.inf if not _is_integral(dtype) else 0 if dtype is rl.bool else _type_info.iinfo(dtype).min


def _highest(dtype):
    return math.inf if not _is_integral(dtype) else 1 if dtype is rl.bool else _type_info.iinfo(dtype).max


def _broadcast(mask, x):
    if mask.layout != x.layout:
        raise ValueError(
            f"masked: mask and input must have the same layout, got {mask.layout} and {x.layout}"
        )
    return mask.to(rl.bool).expand(x.shape) if tuple(mask.shape) != tuple(x.shape) else mask.to(rl.bool)


def _filled(x, mask, identity):
    if mask is None:
        return x
    return rl.where(_broadcast(mask, x), x, rl.scalar_tensor(identity, dtype=x.dtype))


def _dims(dim, ndim):
    """Wrapped and in order; all dimensions for None and ()."""
    if dim is None or (isinstance(dim, (tuple, list)) and len(dim) == 0):
        return tuple(range(ndim))
    found = []
    for d in (dim,) if isinstance(dim, int) else dim:
        d = wrap(d, ndim)
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d)
    return tuple(sorted(found)) if ndim else ()


@_with_own_mask
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the elements that the mask keeps; 0 where none is left.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.sum(x, 1, mask=mask)
        tensor([4., 5.])
    """
    x = input.to(_wide(input.dtype, dtype))
    return _filled(x, mask, 0).sum(_dims(dim, x.dim()), keepdim=bool(keepdim), dtype=x.dtype)


@_with_own_mask
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the elements that the mask keeps; 1 where none is left.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.prod(x, 1, mask=mask)
        tensor([3., 5.])
    """
    x = _filled(input.to(_wide(input.dtype, dtype)), mask, 1)
    for d in reversed(_dims(dim, x.dim())):
        x = x.prod(d, keepdim=bool(keepdim))
    return x


@_with_own_mask
def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums along a dimension over the elements that the mask keeps.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int): the dimension.
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.cumsum(x, 1, mask=mask)
        tensor([[1., 1., 4.],
                [0., 5., 5.]])
    """
    return _filled(input.to(_wide(input.dtype, dtype)), mask, 0).cumsum(dim)


@_with_own_mask
def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products along a dimension over the elements that the mask keeps.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int): the dimension.
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.cumprod(x, 1, mask=mask)
        tensor([[1., 1., 3.],
                [1., 5., 5.]])
    """
    return _filled(input.to(_wide(input.dtype, dtype)), mask, 1).cumprod(dim)


@_with_own_mask
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The maximum of the elements that the mask keeps; the least value of the type where none is left.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.amax(x, 1, mask=mask)
        tensor([3., 5.])
    """
    x = input.to(dtype or input.dtype)
    return _filled(x, mask, _lowest(x.dtype)).amax(_dims(dim, x.dim()), bool(keepdim))


@_with_own_mask
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The minimum of the elements that the mask keeps; the largest value of the type where none is left.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.amin(x, 1, mask=mask)
        tensor([1., 5.])
    """
    x = input.to(dtype or input.dtype)
    return _filled(x, mask, _highest(x.dtype)).amin(_dims(dim, x.dim()), bool(keepdim))


@_with_own_mask
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The index of the maximum of the elements that the mask keeps.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int): the dimension; None counts through all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): of the elements as they are compared. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.argmax(x, 1, mask=mask)
        tensor([2., 1.])
    """
    x = _filled(input, mask, _lowest(input.dtype))
    return x.argmax(dim, bool(keepdim)).to(dtype or input.dtype)


@_with_own_mask
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The index of the minimum of the elements that the mask keeps.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int): the dimension; None counts through all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): of the elements as they are compared. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.argmin(x, 1, mask=mask)
        tensor([0., 1.])
    """
    x = _filled(input, mask, _highest(input.dtype))
    return x.argmin(dim, bool(keepdim)).to(dtype or input.dtype)


def _count(x, mask, dims, keepdim):
    ones = rl.ones(x.shape, dtype=rl.int64)
    return _filled(ones, mask, 0).sum(dims, keepdim=keepdim)


@_with_own_mask
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the elements that the mask keeps; NaN where none is left.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.mean(x, 1, mask=mask)
        tensor([2., 5.])
    """
    dtype = dtype or input.dtype
    if _is_integral(dtype):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {dtype}"
        )
    dims, keepdim = _dims(dim, input.dim()), bool(keepdim)
    if mask is None:
        return input.mean(dims, keepdim, dtype=dtype)
    return sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, mask, dims, keepdim)


@_with_own_mask
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The lower median of the elements that the mask keeps.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int): the dimension. Default: -1
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.median(x, 1, mask=mask)
        tensor([1., 5.])
    """
    x = input.to(dtype or input.dtype)
    if _is_integral(x.dtype):
        if mask is None:
            return x.median(dim, keepdim).values
        if not bool(_broadcast(mask, x).any(dim).all()):
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        return _filled(x.to(rl.float64), mask, math.nan).nanmedian(dim, keepdim).values.to(x.dtype)
    return _filled(x, mask, math.nan).nanmedian(dim, keepdim).values


@_with_own_mask
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log(sum(exp(x))) over the elements that the mask keeps.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.logsumexp(x, 1, mask=mask)
        tensor([3.1269, 5.0000])
    """
    x = input.to(dtype or input.dtype)
    y = _filled(x, mask, _lowest(x.dtype)).logsumexp(_dims(dim, x.dim()), bool(keepdim))
    return y.to(x.dtype)


@_with_own_mask
def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), where elements that a mask leaves out count as log(0).

    Args:
        input (Tensor): any.
        other (Tensor): broadcast with input.
        dtype (dtype): the type it is computed in. Default: None
        input_mask (Tensor): bool, False leaves out elements of input. Default: None
        other_mask (Tensor): the same for other. Default: None

    Example:
        >>> a, b = torch.zeros(2), torch.zeros(2)
        >>> torch.masked.logaddexp(a, b, input_mask=torch.tensor([True, False]))
        tensor([0.6931, 0.0000])
    """
    dtype = dtype or input.dtype
    x = _filled(input.to(dtype), input_mask, -math.inf)
    return rl.logaddexp(x, _filled(other.to(dtype), other_mask, -math.inf)).to(dtype)


@_with_own_mask
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The norm of the elements that the mask keeps: (sum |x|^ord)^(1 / ord).

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        ord (float): the exponent; inf gives the largest |x|. Default: 2.0
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.norm(x, 2.0, 1, mask=mask)
        tensor([3.1623, 5.0000])
    """
    x = input.to(dtype or input.dtype)
    if ord == -math.inf and _is_integral(x.dtype):
        raise AssertionError(f"input must be floating point, got {x.dtype}")
    x = _filled(x, mask, math.inf if ord < 0 else 0)
    return rl.linalg.vector_norm(x, ord, _dims(dim, x.dim()), bool(keepdim), dtype=dtype)


@_with_own_mask
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The elements that the mask keeps, divided by the larger of their norm along dim and eps; 0 elsewhere.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        ord (float): the exponent of the norm.
        dim (int): the dimension.
        eps (float): the least that is divided by. Default: 1e-12
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.normalize(x, 2.0, 1, mask=mask)
        tensor([[0.3162, 0.0000, 0.9487],
                [0.0000, 1.0000, 0.0000]])
    """
    x = input.to(dtype or input.dtype)
    size = norm(x, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(x, mask, 0) / rl.maximum(size, rl.scalar_tensor(eps, dtype=size.dtype))


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask, root):
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    correction = (1 if unbiased is None or unbiased else 0) if correction is None else correction
    dims, keepdim = _dims(dim, input.dim()), bool(keepdim)
    wanted = dtype or (rl.get_default_dtype() if _is_integral(input.dtype) else input.dtype)
    x = input.to(wanted)
    count = _count(x, mask, dims, True)
    middle = sum(x, dims, keepdim=True, mask=mask) / count
    distance = _filled(x - middle, mask, 0)
    total = (distance * distance.conj() if x.is_complex() else distance * distance).sum(dims, keepdim=keepdim)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction:
        count = (count - correction).clamp(min=0)
    v = (total / count).to(wanted)
    return v.sqrt() if root else v


@_with_own_mask
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the elements that the mask keeps: sum (x - mean)^2 / (count - correction).

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        unbiased (bool): True means correction 1, False 0. Default: None
        correction (int): taken off the count; None means 1. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.var(x, 1, unbiased=False, mask=mask)
        tensor([1., 0.])
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, root=False)


@_with_own_mask
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation of the elements that the mask keeps: the square root of var.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int or tuple of ints): the dimensions; None means all. Default: None
        unbiased (bool): True means correction 1, False 0. Default: None
        correction (int): taken off the count; None means 1. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.std(x, 1, unbiased=False, mask=mask)
        tensor([1., 0.])
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, root=True)


@_with_own_mask
def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax along a dimension over the elements that the mask keeps; 0 elsewhere.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int): the dimension.
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.softmax(x, 1, mask=mask)
        tensor([[0.1192, 0.0000, 0.8808],
                [0.0000, 1.0000, 0.0000]])
    """
    x = input.to(dtype or input.dtype)
    return _filled(x, mask, _lowest(x.dtype)).softmax(dim)


@_with_own_mask
def log_softmax(input, dim, *, dtype=None, mask=None):
    """The logarithm of softmax along a dimension over the elements that the mask keeps; -inf elsewhere.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int): the dimension.
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.log_softmax(x, 1, mask=mask)
        tensor([[-2.1269,    -inf, -0.1269],
                [   -inf,  0.0000,    -inf]])
    """
    x = input.to(dtype or input.dtype)
    return _filled(x, mask, _lowest(x.dtype)).log_softmax(dim)


@_with_own_mask
def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of -input along a dimension over the elements that the mask keeps; 0 elsewhere.

    Args:
        input (Tensor): any; a MaskedTensor brings a mask along.
        dim (int): the dimension.
        dtype (dtype): the type it is computed in. Default: None
        mask (Tensor): bool, broadcast with input; False leaves elements out. Default: None

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> mask = torch.tensor([[True, False, True], [False, True, False]])
        >>> torch.masked.softmin(x, 1, mask=mask)
        tensor([[0.8808, 0.0000, 0.1192],
                [0.0000, 1.0000, 0.0000]])
    """
    x = input.to(dtype or input.dtype)
    return (-_filled(x, mask, _highest(x.dtype))).softmax(dim)
