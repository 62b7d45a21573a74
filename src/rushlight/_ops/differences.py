"""Norms, distances, differences and integrals composed of other ops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from rushlight._C import dtype

from .. import _C
from .._C import Tensor
from .._core import autocast as _autocast
from .._core.compose import op
from ._arguments import need_int, need_tensor, wrap
from .shape import broadcast_shapes

_ops = _C.ops
_distances = _ops["_distances"]


@op(method=True, out="exact")
def norm(
    input: Tensor,
    p: complex | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
) -> Tensor:
    """A norm of vectors, of matrices, or of all elements; torch.linalg has it by the names vector_norm and matrix_norm.

    Args:
        input (Tensor): what it is taken of.
        p (Number or str): of the vector norm; 'fro', which is 2, or 'nuc', the sum of singular values. Default: 'fro'
        dim (int or sequence of ints): the dimensions that are reduced. Default: None, all
        keepdim (bool): whether these stay, with size 1. Default: False
        dtype (dtype): to compute in. Default: None

    Example:
        >>> torch.norm(torch.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if isinstance(p, str):
        if p == "nuc":
            from .. import linalg

            return linalg.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
        if p != "fro":
            raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
        p = 2
    elif p is None:
        p = 2
    return _ops["linalg.vector_norm"](input, p, dim, keepdim, dtype=dtype)


@op(method=True)
def dist(input: Tensor, other: Tensor, p: complex = 2) -> Tensor:
    """The p-norm of input - other.

    Args:
        input (Tensor): one point.
        other (Tensor): another; both broadcast.
        p (Number): of the norm. Default: 2

    Example:
        >>> torch.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0]))
        tensor(5.)
    """
    return _ops["linalg.vector_norm"](input - other, p)


@op(method=True, inplace=True, out=True)
def renorm(input: Tensor, p: complex, dim: int, maxnorm: complex) -> Tensor:
    """The slices along a dimension, scaled down to a p-norm of at most maxnorm.

    Args:
        input (Tensor): of two dimensions or more.
        p (Number): of the norm.
        dim (int): the dimension along which slices lie.
        maxnorm (Number): what a norm may be.

    Example:
        >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    if isinstance(p, complex) or isinstance(maxnorm, complex):
        raise RuntimeError("renorm: p and maxnorm must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions")
    dim = wrap(dim, input.dim())
    others = [d for d in range(input.dim()) if d != dim]
    # Squares of large values, and 1e-7 itself, need more range than float16 and float32 have.
    wide = _C.complex128 if input.is_complex() else _C.float64
    size = _ops["linalg.vector_norm"](input, p, others, True, dtype=wide)
    factor = _ops["where"](size > maxnorm, maxnorm / (size + 1e-7), 1.0)
    return (input * factor).to(input.dtype)


def _pair_norm(difference, p):
    return _ops["linalg.vector_norm"](difference, p, -1)


@op()
@_autocast.full
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The p-norm distances between the rows of x1 (..., P, M) and of x2 (..., R, M).

    Args:
        x1 (Tensor): (..., P, M).
        x2 (Tensor): (..., R, M); batch dimensions broadcast.
        p (float): of the norm, 0 to inf. Default: 2.0
        compute_mode (str): 'use_mm_for_euclid_dist', 'donot_use_mm_for_euclid_dist', or for either as it suits many rows,
            'use_mm_for_euclid_dist_if_necessary', whether a GEMM may compute distances with p = 2.

    Returns:
        Tensor: (..., P, R).

    Gradient:
        0 where two rows are equal.

    Example:
        >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    need_tensor("cdist", "x1", x1)
    need_tensor("cdist", "x2", x2)
    first, second = x1.shape, x2.shape
    if len(first) < 2:
        raise RuntimeError(f"cdist only supports at least 2D tensors, X1 got: {x1.dim()}D")
    if len(second) < 2:
        raise RuntimeError(f"cdist only supports at least 2D tensors, X2 got: {x2.dim()}D")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.is_floating_point():
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {str(x.dtype).rsplit('.', 1)[-1]}"
            )
    if first[-1] != second[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {first[-1]} X2: {second[-1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode is not None and compute_mode not in modes and compute_mode not in (0, 1, 2):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    many = first[-2] > 25 or second[-2] > 25 or compute_mode in (modes[1], 1)
    if p == 2 and many and compute_mode not in (modes[2], 2):
        # |a - b|^2 = |a|^2 - 2ab + |b|^2: one matrix product instead of P R M differences.
        n1, n2 = (x1 * x1).sum(-1, keepdim=True), (x2 * x2).sum(-1, keepdim=True)
        left = _ops["cat"]((-2 * x1, n1, _ops["ones_like"](n1)), -1)
        square = left @ _ops["cat"]((x2, _ops["ones_like"](n2), n2), -1).mT
        if not square.requires_grad and type(square) is Tensor:
            return square.clamp_min_(0).sqrt_()
        together = square <= 0  # the root has no derivative there
        return square.masked_fill(together, 1).sqrt().masked_fill(together, 0)
    if x1.dtype != x2.dtype or x1.dtype not in (_C.float32, _C.float64):
        return _pair_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), float(p))
    if len(first) == 2 and len(second) == 2:
        return _distances(x1.unsqueeze(0), x2.unsqueeze(0), float(p)).squeeze(0)
    if len(first) == 3 and len(second) == 3 and first[0] == second[0]:
        return _distances(x1, x2, float(p))
    batch = broadcast_shapes(first[:-2], second[:-2])
    rows = [x.expand(*batch, *x.shape[-2:]).reshape(prod(batch), *x.shape[-2:]) for x in (x1, x2)]
    return _distances(*rows, float(p)).reshape(*batch, first[-2], second[-2])


@op(name="nn.functional.pdist")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Computes the p-norm distances between all pairs of rows: ||x_i - x_j||_p for i < j.

    Args:
        input (Tensor): (N, D).
        p (float): exponent of the norm, not negative. Default: 2.0

    Returns:
        A tensor (N (N - 1) / 2,): the pairs (0, 1), (0, 2), ..., (1, 2), ...

    Example:
        >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
        tensor([5.0000, 1.0000, 4.2426])
    """
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if input.dtype in (_C.float32, _C.float64):
        return _ops["_pair_distances"](input, float(p))
    n = input.shape[0]
    i, j = _ops["triu_indices"](n, n, 1).unbind(0)
    return _pair_norm(input.index_select(0, i) - input.index_select(0, j), float(p))


op(name="pdist")(pdist)


@op(method=True, out=True)
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The n-th differences of neighbours along a dimension.

    Args:
        input (Tensor): what they are taken of.
        n (int): how often they are taken. Default: 1
        dim (int): the dimension. Default: -1
        prepend (Tensor): what stands in front of input. Default: None
        append (Tensor): what stands behind it. Default: None

    Example:
        >>> torch.diff(torch.tensor([1, 4, 9]))
        tensor([3, 5])
    """
    need_int("diff", "n", n)
    for name, x in (("prepend", prepend), ("append", append)):
        if x is not None:
            need_tensor("diff", name, x)
    if input.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap(dim, input.dim())
    for x in (prepend, append):
        if x is not None and x.dim() != input.dim():
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        if x is not None:
            for d, (size, given) in enumerate(zip(input.shape, x.shape, strict=True)):
                if d != dim and size != given:
                    raise RuntimeError(
                        "diff expects the shape of tensor to prepend or append to match that of input except along "
                        f"the differencing dimension; input.size({d}) = {size}, but got tensor.size({d}) = {given}"
                    )
    if n == 0:
        return input.clone()
    parts = [x for x in (prepend, input, append) if x is not None]
    x = _ops["cat"](parts, dim) if len(parts) > 1 else input
    size = x.shape[dim]
    n = min(n, size)
    if n == 1 and size > 1 and x.dtype is not _C.bool:
        return x.narrow(dim, 1, size - 1) - x.narrow(dim, 0, size - 1)
    for _ in range(n):
        length = max(x.shape[dim] - 1, 0)
        if size == 0:
            return x.narrow(dim, 0, 0).clone()
        later, earlier = x.narrow(dim, x.shape[dim] - length, length), x.narrow(dim, 0, length)
        x = later.logical_xor(earlier) if x.dtype is _C.bool else later - earlier
    return x


def _spacing(name, y, x, dx, dim):
    """The distances between neighbouring sample points, shaped to multiply y's means along dim."""
    for what, t in (("y", y), ("x", x)):
        if isinstance(t, _C.Tensor) and t.dtype is _C.bool:
            raise RuntimeError(f"{name}: received a bool input for `{what}`, but bool is not supported")
    if x is None:
        if isinstance(dx, complex):
            raise RuntimeError(f"{name}: Currently, we only support dx as a real number")
        return dx
    if x.dim() == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        return x.diff().reshape([-1 if k == dim else 1 for k in range(y.dim())])
    # x lines up with y from the right.
    if x.dim() < y.dim():
        x = x.reshape([1] * (y.dim() - x.dim()) + list(x.shape))
    if x.shape[dim - y.dim()] != y.shape[dim] and x.dim() >= y.dim():
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
    return x.diff(dim=dim - y.dim())


def _areas(name, y, x, dx, dim):
    width = _spacing(name, y, x, dx, dim)
    n = y.shape[dim]
    left, right = y.narrow(dim, 0, n - 1), y.narrow(dim, 1, n - 1)
    return (left + right) * width / 2.0


@op(alias=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: complex | None = None, dim: int = -1) -> Tensor:
    """The integral of y along a dimension by the trapezoidal rule.

    Args:
        y (Tensor): values of the function.
        x (Tensor): where they were taken. Default: None
        dx (Number): the distance of the points, where x is not given. Default: None, 1
        dim (int): the dimension to integrate along. Default: -1

    Example:
        >>> torch.trapezoid(torch.tensor([1.0, 1.0, 3.0]), torch.tensor([0.0, 1.0, 3.0]))
        tensor(5.)
    """
    need_tensor("trapezoid", "y", y)
    if x is not None:
        need_tensor("trapezoid", "x", x)
    dim = wrap(dim, y.dim())
    if x is not None and dx is not None:
        raise TypeError("trapezoid() received an invalid combination of arguments: both x and dx")
    dx = 1 if dx is None else dx
    if y.dim() == 0 or y.shape[dim] == 0:
        _spacing("trapezoid", y, None, dx, dim)
        shape = [s for k, s in enumerate(y.shape) if y.dim() and k != dim % y.dim()]
        return _ops["zeros"](shape, dtype=_result_dtype(y), device=y.device)
    if x is None and isinstance(dx, (int, float)) and (y.is_floating_point() or y.is_complex()):
        # All inner points count twice: one pass over y, and nothing as large as y is kept.
        ends = y.select(dim, 0) + y.select(dim, -1)
        _spacing("trapezoid", y, None, dx, dim)
        return (y.sum(dim) - ends * 0.5) * dx
    return _areas("trapezoid", y, x, dx, dim).sum(dim)


def _result_dtype(y):
    return y.dtype if y.is_floating_point() or y.is_complex() else _ops["get_default_dtype"]()


@op()
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: complex | None = None, dim: int = -1
) -> Tensor:
    """The integral of y from the first point to each other one, along a dimension.

    Args:
        y (Tensor): values of the function.
        x (Tensor): where they were taken. Default: None
        dx (Number): the distance of the points, where x is not given. Default: None, 1
        dim (int): the dimension to integrate along. Default: -1

    Example:
        >>> torch.cumulative_trapezoid(torch.tensor([0.0, 2.0, 4.0]))
        tensor([1., 4.])
    """
    need_tensor("cumulative_trapezoid", "y", y)
    if x is not None:
        need_tensor("cumulative_trapezoid", "x", x)
    dim = wrap(dim, y.dim())
    if x is not None and dx is not None:
        raise TypeError("cumulative_trapezoid() received an invalid combination of arguments: both x and dx")
    if y.shape[dim] == 0:
        return _ops["zeros"](y.shape, dtype=_result_dtype(y), device=y.device)
    return _areas("cumulative_trapezoid", y, x, 1 if dx is None else dx, dim).cumsum(dim)


def _derivative(input, at, dim, edge_order):
    """d input / d at along one dimension: second-order differences inside, edge_order at both ends."""
    n = input.shape[dim]
    part = lambda start, stop: input.narrow(dim, start, stop - start)  # noqa: E731
    shape = [1] * input.dim()
    shape[dim] = -1
    if isinstance(at, Tensor):
        h = (at[1:] - at[:-1]).view(shape)
        before, after = h.narrow(dim, 0, n - 2), h.narrow(dim, 1, n - 2)
        h0, h1, k0, k1 = (
            h.narrow(dim, 0, 1),
            h.narrow(dim, min(1, n - 2), 1),
            h.narrow(dim, n - 2, 1),
            h.narrow(dim, max(n - 3, 0), 1),
        )
        inside = (
            -after / (before * (before + after)) * part(0, n - 2)
            + (after - before) / (before * after) * part(1, n - 1)
            + before / (after * (before + after)) * part(2, n)
        )
    else:
        h0 = h1 = k0 = k1 = at
        inside = (part(2, n) - part(0, n - 2)) / (
            2 * at
        )  # the middle one has no share, not even as an infinity
    first, last = (part(1, 2) - part(0, 1)) / h0, (part(n - 1, n) - part(n - 2, n - 1)) / k0
    if edge_order == 2:
        first = (
            -(2 * h0 + h1) / (h0 * (h0 + h1)) * part(0, 1) + (h0 + h1) / (h0 * h1) * part(1, 2)
            - h0 / (h1 * (h0 + h1)) * part(2, 3)
        )  # fmt: skip
        last = (
            k0 / (k1 * (k1 + k0)) * part(n - 3, n - 2) - (k1 + k0) / (k1 * k0) * part(n - 2, n - 1)
            + (2 * k0 + k1) / (k0 * (k1 + k0)) * part(n - 1, n)
        )  # fmt: skip
    return _ops["cat"]([first, inside, last], dim)


@op
def gradient(
    input: Tensor,
    *,
    spacing: complex | Sequence[complex] | Sequence[Tensor] | None = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The derivative of a sampled function along each dimension: central differences, one-sided at the borders.

    Args:
        input (Tensor): the samples.
        spacing (Number, or sequence of Numbers or Tensors): the step, for all dimensions or for each; or the coordinates
            of the samples along each. Default: 1
        dim (int or sequence of ints): the dimensions to differentiate along. Default: None, all
        edge_order (int): 1 or 2, the order of the differences at the borders. Default: 1

    Returns:
        tuple of Tensors: of the shape of input, one for each dimension.

    Example:
        >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    need_tensor("gradient", "input", input)
    spacing = 1 if spacing is None else spacing
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(range(input.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = [wrap(d, input.dim()) for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(
            f"dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims"
        )
    coords = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(coords) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{input.dim()}', since dim argument was not given, but got a list of length {len(coords)}"
        )
    for d, at in zip(dims, coords, strict=True):
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        if isinstance(at, Tensor) and at.shape != (input.shape[d],):
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension and as many elements as input there"
            )
    if not (input.is_floating_point() or input.is_complex()):
        input = input.to(_ops["get_default_dtype"]())
    return tuple(_derivative(input, at, d, edge_order) for d, at in zip(dims, coords, strict=True))


@op(method=True, out=True)
def hash_tensor(
    input: Tensor, dim: int | Sequence[int] = (), *, keepdim: bool = False, mode: int = 0
) -> Tensor:
    """The exclusive or of the elements' 64-bit patterns, as uint64.

    Args:
        input (Tensor): floats count as float64, integers as int64.
        dim (int or sequence of ints): the dimensions that are reduced. Default: (), all
        keepdim (bool): whether these stay, with size 1. Default: False
        mode (int): 0, the only one. Default: 0

    Example:
        >>> torch.hash_tensor(torch.tensor([1, 2, 4]))
        tensor(7, dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown mode {mode}, only mode 0 (xor) is supported")
    if input.is_complex():
        raise NotImplementedError(
            f"\"xor_sum_cpu\" not implemented for '{str(input.dtype).rsplit('.', 1)[-1]}'"
        )
    wide = input.detach().to(_C.float64).view(_C.int64) if input.is_floating_point() else input.to(_C.int64)
    return _ops["_xor"](wide, dim, keepdim).view(_C.uint64)
