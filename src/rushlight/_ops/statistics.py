"""Statistics composed of reductions and sorts: means, quantiles, covariance."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight._C import Tensor, dtype

from .. import _C
from .._core import autocast as _autocast
from .._core.compose import op
from ._arguments import need_tensor, type_name, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


_ops = _C.ops


@op(method=True, out=True)
def nanmean(
    input: Tensor,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """The mean of the elements that are not NaN.

    Args:
        input (Tensor): what it is taken of.
        dim (int or sequence of ints): the dimensions that are reduced. Default: None, all
        keepdim (bool): whether these stay, with size 1. Default: False
        dtype (dtype): to compute in. Default: None

    Example:
        >>> torch.nanmean(torch.tensor([1.0, math.nan, 3.0]))
        tensor(2.)
    """
    if not (input.is_floating_point() or input.is_complex()):
        kind = type_name(input.dtype)
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {kind}"
        )
    present = input.isnan().logical_not()
    total = input.masked_fill(present.logical_not(), 0).sum(dim, keepdim, dtype=dtype)
    return total / present.sum(dim, keepdim)


@op(method=True, out="exact")
@_autocast.full
def quantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The q-th quantiles: the values below which that part of the elements lies. NaN where there is one.

    Args:
        input (Tensor): float32 or float64.
        q (float or Tensor): 0 to 1, one or a vector.
        dim (int): the dimension that is reduced. Default: None, all
        keepdim (bool): whether it stays, with size 1. Default: False
        interpolation (str): between two elements, 'linear', 'lower', 'higher', 'midpoint' or 'nearest'. Default: 'linear'

    Returns:
        Tensor: with a vector q, its dimension comes first.

    Example:
        >>> torch.quantile(torch.tensor([1.0, 2.0, 4.0]), 0.75)
        tensor(3.)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skip_nan=False)


@op(method=True, out=True)
@_autocast.full
def nanquantile(
    input: Tensor,
    q: Tensor | float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The q-th quantiles of the elements that are not NaN.

    Args:
        input (Tensor): float32 or float64.
        q (float or Tensor): 0 to 1, one or a vector.
        dim (int): the dimension that is reduced. Default: None, all
        keepdim (bool): whether it stays, with size 1. Default: False
        interpolation (str): as in torch.quantile. Default: 'linear'

    Example:
        >>> torch.nanquantile(torch.tensor([1.0, math.nan, 4.0]), 0.5)
        tensor(2.5000)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skip_nan=True)


def _quantile(name, x, q, dim, keepdim, interpolation, skip_nan):
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        kinds = "linear, lower, higher, midpoint or nearest"
        raise RuntimeError(f"{name}() interpolation must be one of {kinds}, but got {interpolation}")
    if x.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if x.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if isinstance(q, _C.Tensor):
        if q.dim() > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q.dtype != x.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if not q.is_meta and not bool(((q >= 0) & (q <= 1)).all()):
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    else:
        if isinstance(q, bool) or not isinstance(q, (int, float)):
            raise TypeError(
                f"{name}(): argument 'q' (position 2) must be Tensor or float, not {type(q).__name__}"
            )
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = _ops["full"]((), float(q), dtype=x.dtype, device=x.device)

    shape = list(x.shape)
    if dim is None:
        x = x.reshape(-1)
        shape = [1] * len(shape) if keepdim else []
    else:
        dim = wrap(dim, x.dim())
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


def _observations(name, weights, count, kind, allowed):
    """One weight per observation, checked."""
    what = f"cov(): expected {name} to have"
    if weights.dim() > 1:
        raise RuntimeError(f"{what} one or fewer dimensions but got {name} with {weights.dim()} dimensions")
    if not allowed:
        raise RuntimeError(f"{what} {kind} dtype but got {name} with {type_name(weights.dtype)} dtype")
    if weights.numel() != count:
        raise RuntimeError(
            f"{what} the same numel as there are observations in the input "
            f"but got {weights.numel()} != {count}"
        )
    if count and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights.reshape(-1)


def _check_table(name, x):
    if x.dim() > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions "
            f"but got an input with {x.dim()} dimensions"
        )


@op(method=True)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """The covariance matrix of variables in rows and observations in columns.

    Args:
        input (Tensor): (variables, observations); a vector is one variable.
        correction (int): what is taken from the number of observations before it divides. Default: 1
        fweights (Tensor): how often each observation was made, as integers. Default: None
        aweights (Tensor): how much each observation counts. Default: None

    Example:
        >>> torch.cov(torch.tensor([[0.0, 2.0, 4.0], [1.0, 1.0, 4.0]]))
        tensor([[4., 3.],
                [3., 3.]])
    """
    _check_table("cov", input)
    if input.dtype is _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape(1, -1) if input.dim() < 2 else input
    count = x.shape[1]
    w = a = None
    if fweights is not None:
        need_tensor("cov", "fweights", fweights)
        real = fweights.is_floating_point() or fweights.is_complex() or fweights.dtype is _C.bool
        w = _observations("fweights", fweights, count, "integral", not real)
    if aweights is not None:
        need_tensor("cov", "aweights", aweights)
        a = _observations("aweights", aweights, count, "floating point", aweights.is_floating_point())
        w = a if w is None else w * a
    total: Any = count if w is None else w.sum()
    if w is not None and count and bool(total == 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (x if w is None else x * w).sum(1, keepdim=True) / total
    if w is None:
        divisor = max(count - correction, 0)
    elif a is None or correction == 0:
        divisor = (total - correction).clamp(min=0)
    else:
        divisor = (total - correction * (w * a).sum() / total).clamp(min=0)
    d = x - mean
    other = d if w is None else d * w
    c = d @ (other.mT.conj() if d.is_complex() else other.mT)
    return (c / divisor).squeeze()


@op(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """The correlation matrix of variables in rows and observations in columns.

    Args:
        input (Tensor): (variables, observations); a vector is one variable.

    Returns:
        Tensor: its diagonal is 1, but NaN for a variable that does not vary.

    Example:
        >>> torch.corrcoef(torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    _check_table("corrcoef", input)
    c = input.cov()
    if c.dim() == 0:
        return c / c
    d = c.diag()
    s = (_ops["real"](d) if d.is_complex() else d).sqrt()
    c = c / s.unsqueeze(1) / s.unsqueeze(0)
    if c.is_complex():
        return _ops["complex"](_ops["real"](c).clamp(-1, 1), _ops["imag"](c).clamp(-1, 1))
    return c.clamp(-1, 1)
