"""Distinct elements, membership and histograms, composed of sorts and searches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight._C import Tensor

from .. import _C
from .._core.compose import op
from ._arguments import need_int, type_name, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


_ops = _C.ops


def named(name, fields, values):
    """A named tuple as ops in C++ return it (torch.return_types.<name>)."""
    return _ops["_named_tuple"](name, fields, tuple(values))


@op(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in order, or the distinct slices along a dimension.

    Args:
        input (Tensor): the elements.
        sorted (bool): asks for their order, which they have in any case. Default: True
        return_inverse (bool): where each element went. Default: False
        return_counts (bool): how many of each there are. Default: False
        dim (int): the dimension along which slices lie. Default: None, single elements

    Returns:
        Tensor or tuple of Tensors: the elements, then what else was asked for.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_inverse=True, return_counts=True)
        (tensor([1, 3]), tensor([1, 0, 1]), tensor([1, 2]))
    """
    return _distinct(input, return_inverse, return_counts, dim, consecutive=False)


@op(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along a dimension) without those equal to their predecessor.

    Args:
        input (Tensor): the elements.
        return_inverse (bool): where each element went. Default: False
        return_counts (bool): how long each run is. Default: False
        dim (int): the dimension along which slices lie. Default: None, single elements

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_counts=True)
        (tensor([1, 2, 1]), tensor([2, 1, 1]))
    """
    return _distinct(input, return_inverse, return_counts, dim, consecutive=True)


def _all_results(input, return_inverse, return_counts, dim=None):
    """(values, inverse, counts), empty where nobody asked."""
    found = _distinct(input, return_inverse, return_counts, dim, consecutive=False)
    found = list(found) if isinstance(found, tuple) else [found]
    for at, asked in ((1, return_inverse), (2, return_counts)):
        if not asked:
            found.insert(at, _ops["empty"]((0,), dtype=_C.int64, device=input.device))
    return tuple(found)


@op
def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """unique, always with three results."""
    return _all_results(input, return_inverse, return_counts)


@op
def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> Any:
    """unique, always with two results."""
    return _all_results(input, return_inverse, False)[:2]


@op
def unique_dim(
    input: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """torch.unique along a dimension, always with all three results.

    Args:
        input (Tensor): the slices.
        dim (int): the dimension along which they lie.
        sorted (bool): asks for their order, which they have in any case. Default: True
        return_inverse (bool): without it the second result is empty. Default: False
        return_counts (bool): without it the third result is empty. Default: False

    Example:
        >>> torch.unique_dim(torch.tensor([[1, 2], [1, 2]]), 0)[0]
        tensor([[1, 2]])
    """
    return _all_results(input, True, True, dim)


def _distinct(input, return_inverse, return_counts, dim, consecutive):
    x = input.detach()
    if dim is None:
        values, inverse, counts = _ops["_unique_flat"](
            x, bool(return_inverse), bool(return_counts), consecutive
        )
    else:
        dim = wrap(dim, x.dim())
        if x.dim() and 0 in x.shape:
            if x.shape[dim] != 0:
                raise RuntimeError(
                    "There are 0 sized dimensions, and they aren't selected by `dim`, "
                    "so unique cannot be applied"
                )
            if x.shape.count(0) != 1:
                raise RuntimeError(
                    "Number of zero sized dimensions is more than one, so unique cannot be applied"
                )
        slices = x.reshape(1) if x.dim() == 0 else x.movedim(dim, 0)
        rows = slices.reshape(slices.shape[0], -1) if x.numel() else slices.reshape(0, 1)
        first, inverse, counts = _ops["_unique_rows"](
            rows, bool(return_inverse), bool(return_counts), consecutive
        )
        values = x.index_select(dim, first) if x.dim() else x.reshape(1)
    result = [_ops["_no_derivative"](values, "unique_consecutive" if consecutive else "unique", input)]
    if return_inverse:
        result.append(inverse)
    if return_counts:
        result.append(counts)
    return result[0] if len(result) == 1 else tuple(result)


@op(out="exact")
def isin(
    elements: Tensor | complex | None = None,
    test_elements: Tensor | complex | None = None,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    element: complex | None = None,
    test_element: complex | None = None,
) -> Tensor:
    """Whether each element is among the test elements.

    Args:
        elements (Tensor or Number): what is looked for; element is its name for a Number.
        test_elements (Tensor or Number): where it is looked for; test_element is its name for a Number.
        assume_unique (bool): says that neither has an element twice, which no result depends on. Default: False
        invert (bool): asks which are not there. Default: False

    Example:
        >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 3, 4]))
        tensor([False,  True,  True])
    """
    elements = element if elements is None else elements  # scalars are named in the singular
    test_elements = test_element if test_elements is None else test_elements
    if not isinstance(elements, _C.Tensor):
        if not isinstance(test_elements, _C.Tensor):
            raise TypeError("isin(): one of elements and test_elements must be a Tensor")
        elements = _ops["scalar_tensor"](
            elements, dtype=None if isinstance(elements, float) else test_elements.dtype
        )
    if not isinstance(test_elements, _C.Tensor):
        found = elements.eq(test_elements)  # type: ignore[arg-type]
        return found.logical_not() if invert else found
    if elements.dtype.is_complex or test_elements.dtype.is_complex:
        raise RuntimeError(
            f"Unsupported input type encountered for isin(): {elements.dtype} and {test_elements.dtype}"
        )
    tests = test_elements if test_elements.dim() == 1 else test_elements.reshape(-1)
    if tests.numel() == 0:
        found = _ops["zeros"](elements.shape, dtype=_C.bool, device=elements.device)
    elif tests.numel() <= 8 or tests.numel() * elements.numel() <= 1024:
        found = (elements.unsqueeze(-1) == tests).any(-1)
    else:
        common = _ops["promote_types"](elements.dtype, tests.dtype)
        ordered, wanted = tests.detach().to(common).sort()[0], elements.detach().to(common)
        at = _ops["searchsorted"](ordered, wanted).clamp(max=ordered.numel() - 1)
        found = ordered[at].eq(wanted)
    return found.logical_not() if invert else found


@op(method=True, out="exact")
def histogram(
    input: Tensor,
    bins: Tensor | int,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """How many elements (or how much weight) fall between neighbouring edges; the last bin is closed.

    Args:
        input (Tensor): the values.
        bins (int or Tensor): how many bins of one width, or their edges, rising.
        range (pair of floats): of the bins, where these are a number. Default: None, of the values
        weight (Tensor): what each value counts. Default: None, 1
        density (bool): whether the result is divided to have the integral 1. Default: False

    Returns:
        A named tuple with the fields hist and bin_edges.

    Example:
        >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 4.0))
        torch.return_types.histogram(
        hist=tensor([2., 1.]),
        bin_edges=tensor([0., 2., 4.]))
    """
    if not input.is_floating_point():
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{type_name(input.dtype)}'")
    if isinstance(bins, _C.Tensor) and range is not None:
        raise TypeError(
            "histogram() received an invalid combination of arguments: range is only used when bins is an integer"
        )
    if isinstance(bins, _C.Tensor) and bins.dtype != input.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{type_name(input.dtype)} and bins with dtype {type_name(bins.dtype)}"
        )
    flat = input.detach().reshape(-1, 1)
    if weight is not None:
        if tuple(weight.shape) != tuple(input.shape):
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                "excluding its innermost dimension (of size 1, which every element of histogram's input counts as): "
                f"got input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
            )
        weight = weight.reshape(-1)
    hist, edges = _histogramdd("histogram", flat, [bins], range, weight, density)
    hist = _ops["_no_derivative"](hist, "histogram", input)
    return named("histogram", "hist, bin_edges", (hist, edges[0]))


@op(method=True)
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """A histogram in several dimensions.

    Args:
        input (Tensor): (..., D), points.
        bins (int, or sequence of ints or Tensors): how many bins for all dimensions or for each, or the edges of each.
        range (sequence of floats): the lowest and highest edge of each dimension. Default: None, of the points
        weight (Tensor): what each point counts. Default: None, 1
        density (bool): whether the result is divided to have the integral 1. Default: False

    Returns:
        A named tuple with the fields hist and bin_edges, a tuple of the edges of each dimension.

    Example:
        >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), bins=2).hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.dim()}"
        )
    n = input.shape[-1]
    bins = [bins] * n if isinstance(bins, int) else list(bins)
    if len(bins) != n:
        raise RuntimeError(
            f"torch.histogramdd: expected {n} sequences of bin edges or bin counts "
            f"for a {n}-dimensional histogram but got {len(bins)}"
        )
    if weight is not None:
        if tuple(weight.shape) != tuple(input.shape[:-1]):
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input "
                "tensor excluding its innermost dimension"
            )
        weight = weight.reshape(-1)
    hist, edges = _histogramdd("histogramdd", input.detach().reshape(-1, n), bins, range, weight, density)
    hist = _ops["_no_derivative"](hist, "histogramdd", input)
    return named("histogramdd", "hist, bin_edges", (hist, tuple(edges)))


def _histogramdd(name, points, bins, range, weight, density):
    n, dtype = points.shape[1], points.dtype
    if weight is not None and weight.dtype != dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input {type_name(dtype)} and weight {type_name(weight.dtype)}; pass weight.to(input.dtype)"
        )
    dims = tuple(k for k, _ in enumerate(bins))
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(
            f"torch.{name}: for a {n}-dimensional histogram range should have {2 * n} elements, "
            f"but got {len(range)}"
        )
    edges = []
    for d, b in enumerate(bins):
        if isinstance(b, _C.Tensor):
            if b.dim() != 1:
                raise RuntimeError(
                    f"torch.{name}: bins tensor should have one dimension, but got {b.dim()} dimensions"
                )
            if b.numel() < 1:
                raise RuntimeError(
                    f"torch.{name}: bins tensor should have at least 1 element, but got 0 elements for dimension {d}"
                )
            if b.dtype != dtype:
                raise RuntimeError(
                    f"torch.{name}: input tensor and bins tensors should have the same dtype, "
                    f"but got {type_name(dtype)} and {type_name(b.dtype)}"
                )
            edges.append(b.detach().clone())
            continue
        need_int(name, "bins", b)
        if b <= 0:
            raise RuntimeError(f"torch.{name}: bins must be > 0, but got {b} for dimension {d}")
        if range is not None:
            low, high = float(range[2 * d]), float(range[2 * d + 1])
        elif points.shape[0] == 0:
            low, high = 0.0, 1.0
        else:
            low, high = points[:, d].min().item(), points[:, d].max().item()
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.{name}: dimension {d}'s range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.{name}: min should not exceed max, but got min {low} max {high} for dimension {d}"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(_ops["linspace"](low, high, b + 1, dtype=dtype, device=points.device))
    inside = cell = None
    for d, e in enumerate(edges):
        x = points[:, d].contiguous()
        at = _ops["searchsorted"](e, x, right=True) - 1
        at = at.masked_fill(x.eq(e[-1]), e.numel() - 2)
        ok = (x >= e[0]) & (x <= e[-1]) & (at >= 0) & (at < e.numel() - 1)
        inside = ok if inside is None else inside & ok
        cell = at if cell is None else cell * (e.numel() - 1) + at
    shape = [e.numel() - 1 for e in edges]
    assert cell is not None  # points have a dimension at least
    cell = cell[inside]
    weights = None if weight is None else weight.detach().to(_C.float64)[inside]
    hist = _ops["bincount"](cell, weights, math.prod(shape)).to(dtype).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            width = e.diff()
            hist = hist / width.reshape([-1 if k == d else 1 for k in dims])
    return hist, edges
