"""Reductions over consecutive segments of a dimension."""

from __future__ import annotations

import math

from rushlight._C import Tensor

from .. import _C
from .._core.compose import op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # typing itself takes milliseconds to import


_EMPTY = {"sum": 0, "prod": 1, "mean": 0, "max": -math.inf, "min": math.inf}


def _share_gradient(extrema, values, ids):
    """The extrema of segments, whose gradient the elements share that reach them, and NaN; `initial` takes no part."""
    reached = (values == extrema.index_select(0, ids)) | values.isnan()
    count = _C.ops["zeros_like"](extrema).index_add(0, ids, reached.to(extrema.dtype)).clamp(min=1)
    mean = _C.ops["zeros_like"](extrema).index_add(0, ids, values.masked_fill(~reached, 0)) / count
    rest = (extrema - mean.detach()).nan_to_num(nan=0.0, posinf=math.inf, neginf=-math.inf)
    return mean + rest  # the mean of equal values may be rounded


def _product_beside_nan(start, values, ids):
    """Products of segments; the gradient of a NaN is the product of the others, as of any other factor."""
    nan = values.isnan()
    ones = _C.ops["ones_like"](start)
    others = start.index_reduce(0, ids, values.masked_fill(nan, 1), "prod")
    several = _C.ops["zeros_like"](start).index_add(0, ids, nan.to(start.dtype)) > 1
    others = others.masked_fill(several, math.nan)
    return others * ones.index_add(0, ids, (values - 1).masked_fill(~nan, 0))


@op(alias=("_segment_reduce",))
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: complex | None = None,
) -> Tensor:
    """Sums, products, means, maxima or minima of segments that follow one another.

    Args:
        data (Tensor): the elements.
        reduce (str): 'sum', 'prod', 'mean', 'max' or 'min'.
        lengths (Tensor): of the segments, along the last dimension. Default: None
        indices (Tensor): not supported, as in PyTorch. Default: None
        offsets (Tensor): where segments begin, and the end, instead of lengths. Default: None
        axis (int): the dimension of data; that of lengths' last one. Default: 0
        unsafe (bool): leaves out the check that lengths fit. Default: False
        initial (Number): what each segment begins with. Default: None

    Example:
        >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([1, 2]))
        tensor([1., 5.])
    """
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in _EMPTY:
        raise RuntimeError(f"reduce argument must be one of {', '.join(_EMPTY)}, got {reduce}")
    if indices is not None:
        raise NotImplementedError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = axis + data.dim() if axis < 0 else axis
    given: Any = lengths if offsets is None else offsets
    if given.dim() != axis + 1:
        raise RuntimeError(
            f"segment_reduce(): expected axis to be the last dimension of lengths or offsets, got {axis}"
        )

    # All segments of all rows are one list of segments over the rows of one matrix.
    n, rest = data.shape[axis], tuple(data.shape[axis + 1 :])
    rows = data.reshape(math.prod(data.shape[: axis + 1]), *rest)
    outer = math.prod(data.shape[:axis])
    if offsets is None:
        lens = given.reshape(outer, -1).to(_C.int64)
        starts = lens.cumsum(1) - lens
        if not (unsafe or lens.is_meta):
            if lens.numel() and lens.min().item() < 0:
                raise RuntimeError("lengths contains negative value!")
            if lens.sum(1).ne(n).any().item():
                raise RuntimeError(
                    "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis)"
                )
    else:
        edges = offsets.reshape(outer, -1).to(_C.int64)
        starts, lens = edges[:, :-1], edges[:, 1:] - edges[:, :-1]
    segments = lens.shape[1]
    lens, starts = lens.reshape(-1), starts + n * _C.ops["arange"](outer, device=data.device).unsqueeze(1)
    ids = _C.ops["repeat_interleave"](lens)
    skipped = starts.reshape(-1) - (lens.cumsum(0) - lens)
    values = rows.index_select(
        0, _C.ops["arange"](ids.numel(), device=data.device) + skipped.index_select(0, ids)
    )

    result = data.new_full((outer * segments, *rest), _EMPTY[reduce] if initial is None else initial)
    if reduce in ("sum", "mean"):
        result = result.index_add(0, ids, values)
    else:
        how = {"prod": "prod", "max": "amax", "min": "amin"}[reduce]
        extremum = reduce != "prod" and _C.ops["is_grad_enabled"]() and values.requires_grad
        start = result
        exact = result.index_reduce(0, ids, values.detach() if extremum else values, how)
        result = _share_gradient(exact, values, ids) if extremum else exact
        if reduce == "prod" and values.requires_grad and bool(values.isnan().any()):
            result = _product_beside_nan(start, values, ids)
    if reduce == "mean":
        column = lens.reshape(-1, *[1] * len(rest))
        result = result / column.clamp(min=1)
        if initial is None:
            result = result.masked_fill(column == 0, math.nan)
    return result.reshape(*data.shape[:axis], segments, *rest)
