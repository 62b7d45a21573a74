"""Rules of ops along dimensions: reductions, scans, sorting."""

from rushlight._C import Tensor

from ..batched import batched_at
from .registry import _name, _shift, _shifts, _wrapped, pointwise, rule


@rule("sum", "mean", "amax", "amin", "nansum", "all", "any", "logsumexp", "var", "std", "var_mean", "std_mean",
      "count_nonzero", "prod", "argmax", "argmin", "median", "max", "min", "linalg.vector_norm", "nanmedian")  # fmt: skip
def _reduce(func, args, kwargs, level):
    name, x = _name(func), args[0]
    if not batched_at(x, level.number):
        return NotImplemented
    v = x._value
    if name in ("max", "min") and (len(args) > 1 and isinstance(args[1], Tensor) or "other" in kwargs):
        return pointwise(func, args, kwargs, level)
    if name in ("var", "std", "var_mean", "std_mean") and len(args) > 1 and isinstance(args[1], bool):
        args, kwargs = args[:1], {**kwargs, "correction": int(args[1])}
    at = 2 if name == "linalg.vector_norm" else 1
    rest = list(args)
    has_position = len(rest) > at
    dim = rest[at] if has_position else kwargs.get("dim", kwargs.get("axis"))
    keyword = "axis" if "axis" in kwargs else "dim"
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        # All elements of a sample: one dimension of the batch.
        keep = kwargs.get("keepdim", kwargs.get("keepdims", False))
        options = {k: a for k, a in kwargs.items() if k not in ("dim", "axis", "keepdim", "keepdims")}
        flat = v.reshape(v.shape[0], x.numel())
        result = func(flat, *rest[1:at], dim=1, **options)
        if name in ("median", "max", "min", "nanmedian"):
            result = result[0]
        made = _wrapped(result, level)
        if keep:
            made = made.reshape((1,) * x.dim()) if isinstance(made, Tensor) else made
        return made
    if x.dim() == 0:
        v, kept = v.unsqueeze(1), kwargs.get("keepdim", False) or (len(rest) > at + 1 and rest[at + 1])
        result = _wrapped(
            func(v, *rest[1:at], dim=1, **{k: a for k, a in kwargs.items() if k == "dtype"}), level
        )
        return result if not kept or isinstance(result, Tensor) else NotImplemented
    dim = _shifts(dim, x.dim())
    if has_position:
        rest[at] = dim
    else:
        kwargs = {**kwargs, keyword: dim}
    return _wrapped(func(v, *rest[1:], **kwargs), level)


@rule("softmax", "log_softmax", "special.softmax", "special.log_softmax", "_softmax", "_log_softmax", "cumsum",
      "cumprod", "logcumsumexp", "cummax", "cummin", "sort", "argsort", "topk", "kthvalue", "unbind", "unsqueeze",
      "narrow", "select", "chunk", "split", "split_with_sizes", "unsafe_chunk", "unsafe_split", "tensor_split",
      "unflatten", "mode", "nn.functional.glu", "_safe_softmax")  # fmt: skip
def _along(func, args, kwargs, level):
    """Functions with one `dim`, whatever else they take."""
    x = args[0]
    if not batched_at(x, level.number):
        return NotImplemented
    name = _name(func)
    position, default = ALONG.get(name, (1, None))
    args = list(args)
    rank = x.dim() + 1 if name == "unsqueeze" else x.dim()
    if rank == 0:
        return NotImplemented
    if (
        len(args) > position
        and name not in ("sort", "argsort")
        or (len(args) > position and isinstance(args[position], int))
    ):
        args[position] = _shift(args[position], rank)
    else:
        key = "axis" if "axis" in kwargs else "dim"
        kwargs = {**kwargs, key: _shift(kwargs.get(key, default), rank)}
    args[0] = x._value
    return _wrapped(func(*args, **kwargs), level)


# name -> (position of dim, its default)
ALONG = {
    "sort": (1, -1), "argsort": (1, -1), "topk": (2, -1), "kthvalue": (2, -1), "unbind": (1, 0), "chunk": (2, 0),
    "split": (2, 0), "split_with_sizes": (2, 0), "unsafe_chunk": (2, 0), "unsafe_split": (2, 0),
    "tensor_split": (2, 0), "mode": (1, -1), "nn.functional.glu": (1, -1),
}  # fmt: skip
