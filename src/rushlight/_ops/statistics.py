"""Statistics composed of reductions and sorts: quantiles, histograms, distinct elements, covariance."""

import math

from .. import _C
from .._compose import op

_ops = _C.ops


def named(name, fields, values):
    """A named tuple as ops in C++ return it (torch.return_types.<name>)."""
    return _ops["_named_tuple"](name, fields, tuple(values))


@op(method=True, out=True)
def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """The mean of the elements that are numbers."""
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {_legacy(input.dtype)}"
        )
    numbers = input.isnan().logical_not()
    total = input.masked_fill(numbers.logical_not(), 0).sum(dim, keepdim, dtype=dtype)
    return total / numbers.sum(dim, keepdim)


def _legacy(dtype):
    return str(dtype).rsplit(".", 1)[-1]


@op(method=True, out=True)
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-th quantiles along a dimension; NaN where the row has one."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skip_nan=False)


@op(method=True, out=True)
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-th quantiles of the elements that are numbers."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skip_nan=True)


def _quantile(name, x, q, dim, keepdim, interpolation, skip_nan):
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if x.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if x.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if isinstance(q, _C.Tensor):
        if q.dim() > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q.dtype != x.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if not bool(((q >= 0) & (q <= 1)).all()):
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    else:
        if isinstance(q, bool) or not isinstance(q, (int, float)):
            raise TypeError(
                f"{name}(): argument 'q' (position 2) must be Tensor or float, not {type(q).__name__}"
            )
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = _ops["full"]((), float(q), dtype=x.dtype)

    shape = list(x.shape)
    if dim is None:
        x = x.reshape(-1)
        shape = [1] * len(shape) if keepdim else []
    else:
        dim = _wrap(dim, x.dim())
        if shape:
            if keepdim:
                shape[dim] = 1
            else:
                del shape[dim]
        x = x.movedim(dim, -1) if x.dim() else x.reshape(1)
    ordered = x.sort(-1)[0]  # (..., n), NaN last
    n = ordered.shape[-1]
    odd = ordered.isnan()
    qs = q.reshape(-1)
    if skip_nan:
        count = odd.logical_not().sum(-1, keepdim=True).to(x.dtype)
        ranks = (qs * (count - 1)).clamp(min=0)  # (..., k)
    else:
        ranks = (qs * (n - 1)).expand(*ordered.shape[:-1], qs.shape[0])
        ranks = ranks.masked_fill(odd[..., -1:], n - 1)
    if interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    elif interpolation == "nearest":
        ranks = ranks.round()
    below = ranks.detach().to(_C.int64)
    result = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weight = 0.5 if interpolation == "midpoint" else ranks - below
        above = ordered.gather(-1, ranks.detach().ceil().to(_C.int64))
        result = result.lerp(above, weight)
    result = result.movedim(-1, 0)  # quantiles first
    return result.reshape(shape) if q.dim() == 0 else result.reshape([qs.shape[0], *shape])


def _wrap(dim, ndim):
    low, high = -max(ndim, 1), max(ndim, 1) - 1
    if not low <= dim <= high:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
        )
    return dim % max(ndim, 1)


@op(method=True)
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements (or slices along dim) in order; on request where each element went and how many there are."""
    return _unique(input, return_inverse, return_counts, dim, consecutive=False)


@op(method=True)
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements (or slices along dim) without those equal to their predecessor."""
    return _unique(input, return_inverse, return_counts, dim, consecutive=True)


def _unique(input, return_inverse, return_counts, dim, consecutive):
    with_grad, x = input, input.detach()
    if dim is None:
        values, inverse, counts = _ops["_unique_flat"](
            x, bool(return_inverse), bool(return_counts), consecutive
        )
    else:
        dim = _wrap(dim, x.dim())
        if x.dim() and 0 in x.shape:
            if x.shape[dim] != 0:
                raise RuntimeError(
                    "There are 0 sized dimensions, and they aren't selected by `dim`, so unique cannot be applied"
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
    result = [values]
    if return_inverse:
        result.append(inverse)
    if return_counts:
        result.append(counts)
    del with_grad
    return result[0] if len(result) == 1 else tuple(result)


@op(out=True)
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is among the test elements."""
    if not isinstance(elements, _C.Tensor):
        if not isinstance(test_elements, _C.Tensor):
            raise TypeError("isin(): one of elements and test_elements must be a Tensor")
        elements = _ops["scalar_tensor"](
            elements, dtype=None if isinstance(elements, float) else test_elements.dtype
        )
    if not isinstance(test_elements, _C.Tensor):
        found = elements.eq(test_elements)
        return found.logical_not() if invert else found
    for t in (elements, test_elements):
        if t.is_complex():
            raise RuntimeError(f"Unsupported input type encountered for isin(): {t.dtype}")
    tests = test_elements.detach().reshape(-1)
    if tests.numel() == 0:
        found = _ops["zeros"](elements.shape, dtype=_C.bool)
    elif tests.numel() <= 8:
        found = elements.detach().unsqueeze(-1).eq(tests).any(-1)
    else:
        common = _ops["promote_types"](elements.dtype, tests.dtype)
        ordered, wanted = tests.to(common).sort()[0], elements.detach().to(common)
        at = _ops["searchsorted"](ordered, wanted).clamp(max=ordered.numel() - 1)
        found = ordered[at].eq(wanted)
    return found.logical_not() if invert else found


@op(method=True, out=True)
def histogram(input, bins, *, range=None, weight=None, density=False):
    """How many elements (or how much weight) fall between neighbouring edges; the last part is closed."""
    if not input.is_floating_point():
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{_legacy(input.dtype)}'")
    if isinstance(bins, _C.Tensor) and range is not None:
        raise TypeError("histogram(): range is only used when bins is an integer")
    flat = input.detach().reshape(-1, 1)
    if weight is not None:
        if tuple(weight.shape) != tuple(input.shape):
            raise RuntimeError(
                "histogramdd(): if weight tensor is provided it should have the same shape as the input"
            )
        weight = weight.reshape(-1)
    hist, edges = _histogramdd("histogram", flat, [bins], range, weight, density)
    return named("histogram", "hist, bin_edges", (hist, edges[0]))


@op(method=True)
def histogramdd(input, bins, range=None, weight=None, density=False):
    """A histogram in N dimensions of points (..., N); bins are numbers, one number, or edges for each dimension."""
    if input.dim() < 2:
        raise RuntimeError(
            f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.dim()}"
        )
    n = input.shape[-1]
    bins = [bins] * n if isinstance(bins, int) else list(bins)
    if len(bins) != n:
        raise RuntimeError(
            f"torch.histogramdd: expected {n} sequences of bin edges or bin counts for a {n}-dimensional histogram but got {len(bins)}"
        )
    if weight is not None:
        if tuple(weight.shape) != tuple(input.shape[:-1]):
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
                "its innermost dimension"
            )
        weight = weight.reshape(-1)
    hist, edges = _histogramdd("histogramdd", input.detach().reshape(-1, n), bins, range, weight, density)
    return named("histogramdd", "hist, bin_edges", (hist, tuple(edges)))


def _histogramdd(name, points, bins, range, weight, density):
    n = points.shape[1]
    dtype = points.dtype
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(
            f"torch.{name}: for a {n}-dimensional histogram range should have {2 * n} elements, but got {len(range)}"
        )
    edges = []
    for d, b in enumerate(bins):
        if isinstance(b, _C.Tensor):
            if b.dim() != 1 or b.numel() < 1:
                raise RuntimeError(
                    f"torch.{name}: bins tensor should have one dimension, but got {b.dim()} dimensions"
                )
            if b.dtype != dtype:
                raise RuntimeError(
                    f"torch.{name}: input tensor and bins tensors should have the same dtype, but got {_legacy(dtype)} and {_legacy(b.dtype)}"
                )
            edges.append(b.detach().clone())
            continue
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
        edges.append(_ops["linspace"](low, high, b + 1, dtype=dtype))
    inside, cell = None, None
    for d, e in enumerate(edges):
        x = points[:, d].contiguous()
        at = _ops["searchsorted"](e, x, right=True) - 1
        at = at.masked_fill(x.eq(e[-1]), e.numel() - 2)
        ok = (x >= e[0]) & (x <= e[-1]) & (at >= 0) & (at < e.numel() - 1)
        inside = ok if inside is None else inside & ok
        cell = at if cell is None else cell * (e.numel() - 1) + at
    shape = [e.numel() - 1 for e in edges]
    cell = cell[inside]
    weights = None if weight is None else weight.detach().to(_C.float64)[inside]
    hist = _ops["bincount"](cell, weights, math.prod(shape)).to(dtype).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for d, e in enumerate(edges):
            width = e.diff()
            hist = hist / width.reshape([-1 if k == d else 1 for k in _range(n)])
    return hist, edges


_range = range


@op(method=True)
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance matrix of variables in rows and observations in columns."""
    x = input
    if x.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {x.dim()} dimensions"
        )
    if x.dtype is _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = x.reshape(1, -1) if x.dim() < 2 else x
    count = x.shape[1]
    w = None
    if fweights is not None:
        if fweights.dim() > 1:
            raise RuntimeError(
                f"cov(): expected fweights to have one or fewer dimensions but got fweights with {fweights.dim()} dimensions"
            )
        if fweights.is_floating_point() or fweights.is_complex() or fweights.dtype is _C.bool:
            raise RuntimeError(
                "cov(): expected fweights to have integral dtype but got fweights with "
                + str(fweights.dtype)
                + " dtype"
            )
        if fweights.numel() != count:
            raise RuntimeError(
                f"cov(): expected fweights to have the same numel as there are observations in the input but got {fweights.numel()} != {count}"
            )
        if count and bool((fweights < 0).any()):
            raise RuntimeError("cov(): fweights cannot be negative")
        w = fweights.reshape(-1)
    if aweights is not None:
        if aweights.dim() > 1:
            raise RuntimeError(
                f"cov(): expected aweights to have one or fewer dimensions but got aweights with {aweights.dim()} dimensions"
            )
        if not aweights.is_floating_point():
            raise RuntimeError(
                "cov(): expected aweights to have floating point dtype but got aweights with "
                + str(aweights.dtype)
                + " dtype"
            )
        if aweights.numel() != count:
            raise RuntimeError(
                f"cov(): expected aweights to have the same numel as there are observations in the input but got {aweights.numel()} != {count}"
            )
        if count and bool((aweights < 0).any()):
            raise RuntimeError("cov(): aweights cannot be negative")
        a = aweights.reshape(-1)
        w = a if w is None else w * a
    w_sum = count if w is None else w.sum()
    if w is not None and count and bool(w_sum == 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (x if w is None else x * w).sum(1, keepdim=True) / w_sum
    if w is None:
        norm = max(count - correction, 0)
    elif aweights is None or correction == 0:
        norm = (w_sum - correction).clamp(min=0)
    else:
        norm = (w_sum - correction * (w * a).sum() / w_sum).clamp(min=0)
    d = x - mean
    other = d if w is None else d * w
    c = d @ (other.mT.conj() if d.is_complex() else other.mT)
    return (c / norm).squeeze()


@op(method=True)
def corrcoef(input):
    """The correlation matrix of variables in rows and observations in columns."""
    if input.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions"
        )
    c = input.cov()
    if c.dim() == 0:
        return c / c
    d = c.diag()
    s = (_ops["real"](d) if d.is_complex() else d).sqrt()
    c = c / s.unsqueeze(1) / s.unsqueeze(0)
    if c.is_complex():
        return _ops["complex"](_ops["real"](c).clamp(-1, 1), _ops["imag"](c).clamp(-1, 1))
    return c.clamp(-1, 1)
