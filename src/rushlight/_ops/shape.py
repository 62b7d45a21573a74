"""Joining, cutting and broadcasting, composed of views and cat."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight._C import Size

from .. import _C
from .._C import Tensor
from .._core.compose import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


_ops = _C.ops


def _listed(tensors):
    """f(a, b) and f([a, b]) mean the same."""
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        return list(tensors[0])
    return list(tensors)


@op
def broadcast_shapes(*shapes: int | Sequence[int]) -> _C.Size:
    """The shape that tensors of these shapes broadcast to.

    Args:
        shapes (int or sequence of ints): an int is a shape of one dimension.

    Raises:
        RuntimeError: sizes that differ, and are not 1.

    Example:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    result: list[int] = []
    for shape in shapes:
        if not isinstance(shape, int | tuple | list):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape!r}"
            )
        sizes = [shape] if isinstance(shape, int) else list(shape)
        if any(s < 0 for s in sizes):
            raise RuntimeError(f"Trying to create tensor with negative dimension: {sizes}")
        result = [1] * (len(sizes) - len(result)) + result
        for i in range(1, len(sizes) + 1):
            if result[-i] == 1:
                result[-i] = sizes[-i]
            elif sizes[-i] not in (1, result[-i]):
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    + " and ".join(str(s) for s in shapes)
                )
    return _C.Size(result)


@op
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of the tensors, all of the shape they broadcast to.

    Args:
        tensors (Tensor): one by one, or as one sequence.

    Returns:
        tuple of Tensors: their repeated elements share memory.

    Example:
        >>> a, b = torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))
        >>> a.shape, b.shape
        (torch.Size([2, 3]), torch.Size([2, 3]))
    """
    tensors = _listed(tensors)
    size = tensors[0].shape if tensors else ()
    for t in tensors[1:]:
        if t.shape != size:
            size = _broadcast_pair(tuple(size), tuple(t.shape))
    return tuple([t.expand(size) for t in tensors])


def _broadcast_pair(a, b):
    """The shape that two broadcast to; an error like that of x + y."""
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for dim in reversed(range(n)):
        if a[dim] != b[dim] and 1 not in (a[dim], b[dim]):
            raise RuntimeError(
                f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]}) at non-singleton "
                f"dimension {dim}"
            )
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


@op
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of the points of a grid: result i has the values of vector i along dimension i, and repeats them along the others.

    Args:
        tensors (Tensor): vectors, or scalars for one point.
        indexing (str): 'ij', or 'xy' to exchange the first two dimensions. Default: None, 'ij' with a warning

    Returns:
        tuple of Tensors: views.

    Example:
        >>> x, y = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4, 5]), indexing="ij")
        >>> x
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    tensors = _listed(tensors)
    if indexing is None:
        _ops["_warn_once"](
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument. Pass "
            'indexing="ij" for what this call does, or "xy" for NumPy\'s order'
        )
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.dim() > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tuple(t.shape)}"
            )
        if t.dtype != tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same device")
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors[0], tensors[1] = tensors[1], tensors[0]
    sizes = [t.numel() for t in tensors]
    grids = []
    for i, t in enumerate(tensors):
        column = [1] * len(sizes)
        column[i] = sizes[i]
        grids.append(t.reshape(column).expand(sizes))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def _at_least(name):
    one = _ops["_" + name]

    def at_least(*tensors: Tensor) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return one(tensors[0])
        return tuple(one(t) for t in _listed(tensors))

    at_least.__name__ = at_least.__qualname__ = name
    at_least.__doc__ = f"""The tensor with at least {name[8]} dimensions, those that are missing of size 1.

    Args:
        tensors (Tensor): one or several; several, or a sequence of them, give a tuple.

    Returns:
        Tensor or tuple of Tensors: views of the arguments, or the arguments.

    Example:
        >>> torch.{name}(torch.tensor(2.0)).dim()
        {name[8]}
    """
    return op(at_least)


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    _at_least(_name)


@op
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given ones along its diagonal, zeros elsewhere.

    Args:
        tensors (Tensor): of at most two dimensions; a vector is a row.

    Example:
        >>> torch.block_diag(torch.ones(1, 2), torch.tensor([[3.0]]))
        tensor([[1., 1., 0.],
                [0., 0., 3.]])
    """
    tensors = _listed(tensors)
    if not tensors:
        return _ops["zeros"](1, 0)
    blocks, dtype, height, width, plain = [], tensors[0].dtype, 0, 0, True
    for i, t in enumerate(tensors):
        if t.dim() > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {t.dim()} dimensions"
            )
        if t.dim() < 2:
            t = _ops["_atleast_2d"](t)
        if t.dtype is not dtype:
            dtype = _ops["promote_types"](dtype, t.dtype)
        plain = plain and type(t) is Tensor and not t.requires_grad
        rows, columns = t.shape
        height, width = height + rows, width + columns
        blocks.append(t)
    if plain:
        whole = _ops["zeros"](height, width, dtype=dtype, device=blocks[0].device)
        top = left = 0
        for b in blocks:
            whole.as_strided(b.shape, (width, 1), top * width + left).copy_(b)
            top, left = top + b.shape[0], left + b.shape[1]
        return whole
    bands, left = [], 0
    for b in blocks:
        rows, columns = b.shape
        before, after = (
            _ops["zeros"](rows, n, dtype=dtype, device=b.device) for n in (left, width - left - columns)
        )
        bands.append(_ops["cat"]([before, b, after], 1))
        left += columns
    return _ops["cat"](bands, 0)


@op
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of one element of each vector, as rows.

    Args:
        tensors (Tensor): vectors; a single one comes back as it is.

    Example:
        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    tensors = _listed(tensors)
    for t in tensors:
        if t.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return _ops["stack"]([g.flatten() for g in meshgrid(*tensors, indexing="ij")], 1)


@op
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, as rows.

    Args:
        input (Tensor): a vector.
        r (int): how many are chosen. Default: 2
        with_replacement (bool): whether an element may be chosen again. Default: False

    Example:
        >>> torch.combinations(torch.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    from .. import zeros

    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return zeros(0, dtype=input.dtype)
    n = input.shape[0]
    if n == 0 or (r > n and not with_replacement):
        return input.new_empty((0, r)) + input.sum() * 0 if input.requires_grad else input.new_empty((0, r))
    if r == 1:
        return input.unsqueeze(1).clone()
    if n == 1:
        return input.expand(1, r).clone()
    # As many rows as there are combinations: what memory cannot hold is refused before the first is made.
    total = n + r - 1 if with_replacement else n
    rows = math.comb(total, min(r, total - r, 64))  # past 64 it is too many anyway
    input.new_empty((min(rows, 2**62), r), dtype=_C.int64)
    first = 0 if with_replacement else 1
    # On the host whatever the input's device: each step's size depends on the values of the one before.
    index = _ops["triu_indices"](n, n, first).mT  # pairs are a triangle
    for _ in range(r - 2):  # each row is followed by all that may stand behind its last index
        after = index[:, -1] + first
        count = n - after
        rows = _ops["repeat_interleave"](count)
        last = _ops["arange"](rows.numel()) + (after - count.cumsum(0) + count).index_select(0, rows)
        index = _ops["cat"]((index.index_select(0, rows), last.unsqueeze(1)), 1)
    return input.index_select(0, index.reshape(-1).to(input.device)).reshape(-1, r)


@op(method=True, out="exact")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements at `indices` along a dimension, both broadcast in the others.

    Args:
        input (Tensor): what is read.
        indices (Tensor): int64, as argmax and argsort give them.
        dim (int): the dimension. Default: None, input is flattened

    Example:
        >>> x = torch.tensor([[3, 1], [2, 4]])
        >>> torch.take_along_dim(x, x.argsort(1), 1)
        tensor([[1, 3],
                [2, 4]])
    """
    if indices.dtype != _C.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    if input.dim() != indices.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    if input.dim() == 0:
        return input.gather(dim, indices)
    if not -input.dim() <= dim < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], "
            f"but got {dim})"
        )
    d = dim % input.dim()
    ours, theirs = list(input.shape), list(indices.shape)
    length, wanted = ours[d], theirs[d]
    ours[d] = theirs[d] = 1
    wide = input
    if ours != theirs:
        sizes = list(broadcast_shapes(ours, theirs))
        sizes[d] = length
        wide = input.expand(sizes)
        sizes[d] = wanted
        indices = indices.expand(sizes)
    return wide.gather(d, indices.remainder(length) if length else indices)  # indices wrap


def _check_source(name, view, src):
    if tuple(view.shape) != tuple(src.shape):
        raise RuntimeError(
            f"{name}: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(view.shape)}"
        )
    return view


def _with_written(name, input, src, view):
    """A copy of the input, with src written to a view of it."""
    result = input.clone(memory_format=_C.contiguous_format)
    _check_source(name, view(result), src).copy_(src)
    return result


@op(method=True, out=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of input with src on a diagonal.

    Args:
        input (Tensor): what is copied.
        src (Tensor): of the diagonal's shape.
        offset (int): above (> 0) or below (< 0) the main diagonal. Default: 0
        dim1 (int): the dimension of the rows. Default: 0
        dim2 (int): the dimension of the columns. Default: 1

    Example:
        >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    return _with_written("diagonal_scatter", input, src, lambda x: x.diagonal(offset, dim1, dim2))


@op(method=True, out=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of input with src at one index of a dimension.

    Args:
        input (Tensor): what is copied.
        src (Tensor): of the shape of input.select(dim, index).
        dim (int): the dimension.
        index (int): where along it.

    Example:
        >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
        tensor([[0., 0.],
                [1., 1.]])
    """
    return _with_written("select_scatter", input, src, lambda x: x.select(dim, index))


@op(method=True, out="exact")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of the tensor with src in a range of a dimension.

    Args:
        input (Tensor): what is copied.
        src (Tensor): of the shape of that range.
        dim (int): the dimension. Default: 0
        start (int): where it begins. Default: None
        end (int): where it ends. Default: None
        step (int): its step. Default: 1

    Example:
        >>> torch.zeros(4).slice_scatter(torch.ones(2), 0, 1, 3)
        tensor([0., 1., 1., 0.])
    """
    part = slice(start, end, step)
    return _with_written("slice_scatter", input, src, lambda x: x.movedim(dim, 0)[part].movedim(0, dim))


@op(method=True, out=True)
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: int | Sequence[int],
    stride: int | Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A copy of input with src in its view of given sizes and strides.

    Args:
        input (Tensor): what is copied.
        src (Tensor): of the view's shape.
        size (sequence of ints): of the view.
        stride (sequence of ints): of the view.
        storage_offset (int): where it begins. Default: None, where input begins

    Example:
        >>> torch.as_strided_scatter(torch.zeros(4), torch.ones(2), (2,), (2,))
        tensor([1., 0., 1., 0.])
    """
    return _with_written(
        "as_strided_scatter", input, src, lambda x: x.as_strided(size, stride, storage_offset or 0)
    )


@op(name="unravel_index")
def unravel_index(indices: Tensor, shape: int | Sequence[int] | Size) -> tuple[Tensor, ...]:
    """Flat indices as one coordinate tensor for each dimension.

    Args:
        indices (Tensor): of integers.
        shape (sequence of ints): of the tensor that they index.

    Returns:
        tuple of Tensors: of the shape of indices.

    Example:
        >>> torch.unravel_index(torch.tensor([0, 5]), (2, 3))
        (tensor([0, 1]), tensor([0, 2]))
    """
    if (
        not isinstance(indices, Tensor)
        or indices.dtype.is_floating_point
        or indices.dtype.is_complex
        or indices.dtype == _C.bool
    ):
        raise TypeError(
            f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', type(indices))}"
        )
    if not isinstance(shape, int | list | tuple):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = [shape] if isinstance(shape, int) else list(shape)
    for s in shape:
        if not isinstance(s, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(s)}")
    if any(s < 0 for s in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    coordinates = []
    for s in reversed(shape):
        coordinates.append(indices.remainder(s))
        indices = indices.div(s, rounding_mode="floor")
    return tuple(reversed(coordinates))


@op(name="_chunk_cat", out=True)
def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Each tensor padded and cut into chunks along a dimension; the chunks joined side by side."""
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if dim < 0:
        if any(t.dim() != tensors[0].dim() for t in tensors):
            raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
        dim += tensors[0].dim()
    parts = []
    for t in tensors:
        if t.numel() == 0:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        if dim >= t.dim():
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        missing = -t.shape[dim] % num_chunks
        if missing:
            padding = t.new_zeros((*t.shape[:dim], missing, *t.shape[dim + 1 :]))
            t = _ops["cat"]([t, padding], dim)
        parts.append(t.reshape(*t.shape[:dim], num_chunks, -1))
    return _ops["cat"](parts, dim + 1)
