"""Rules of ops that turn, cut and join."""

import rushlight as rl
from rushlight._C import Tensor

from ..batched import batched_at, physical, wrap
from .registry import _given, _name, _shift, _shifts, _wrapped, pointwise, rule


@rule("contiguous")
def _contiguous(func, args, kwargs, level):
    x = _given(("input", "memory_format"), args, kwargs)["input"]
    if x.is_contiguous(*args[1:], **kwargs):  # of a sample, wherever the others lie
        return x
    return wrap(x._value.contiguous(), level.number)


def _sizes(rest, kwargs, key):
    if key in kwargs:
        return tuple(kwargs[key])
    return tuple(rest[0]) if len(rest) == 1 and not isinstance(rest[0], int) else tuple(rest)


@rule("view", "reshape", "expand", "repeat", "tile", "broadcast_to", "new_zeros", "new_ones", "new_empty", "view_as",
      "reshape_as", "expand_as", "ravel")  # fmt: skip
def _resize(func, args, kwargs, level):
    name, x, rest = _name(func), args[0], args[1:]
    if not batched_at(x, level.number):
        return NotImplemented if not name.endswith("_as") else getattr(x, name[:-3])(rest[0].shape)
    v = x._value
    if name == "ravel":
        return wrap(v.reshape(v.shape[0], x.numel()), level.number)
    if name.endswith("_as"):
        name, size = name[:-3], tuple(rest[0].shape)
        func = getattr(Tensor, name)
    elif rest and isinstance(rest[0], rl.dtype):
        return pointwise(func, args, kwargs, level)
    else:
        size = _sizes(rest, kwargs, "size" if name not in ("reshape", "repeat", "tile") else
                      {"reshape": "shape", "repeat": "repeats", "tile": "dims"}[name])  # fmt: skip
    options = {k: a for k, a in kwargs.items() if k in ("dtype", "device", "requires_grad")}
    if name.startswith("new_"):
        return wrap(getattr(v, name)((v.shape[0], *size), **options), level.number)
    if name in ("expand", "broadcast_to"):
        missing = len(size) - x.dim()
        v = v.reshape(v.shape[0], *(1,) * missing, *v.shape[1:]) if missing > 0 else v
        kept = tuple(v.shape[1:])
        size = tuple(kept[k] if n == -1 else n for k, n in enumerate(size))
        return wrap(v.expand(v.shape[0], *size), level.number)
    if name in ("repeat", "tile"):
        if name == "tile" and len(size) < x.dim():
            size = (1,) * (x.dim() - len(size)) + size
        missing = len(size) - x.dim()
        v = v.reshape(v.shape[0], *(1,) * missing, *v.shape[1:]) if missing > 0 else v
        return wrap(v.repeat(1, *size), level.number)
    if -1 in size and not v.shape[0]:
        return NotImplemented
    return wrap(getattr(v, name)((v.shape[0], *size)), level.number)


@rule("new_full")
def _new_full(func, args, kwargs, level):
    given = _given(("input", "size", "fill_value"), args, kwargs)
    x, size, value = given.pop("input"), given.pop("size"), given.pop("fill_value")
    if not batched_at(x, level.number) or isinstance(value, Tensor):
        return NotImplemented
    return wrap(x._value.new_full((level.size, *size), value, **given), level.number)


@rule("permute", "flip", "squeeze", "flatten", "movedim", "moveaxis", "transpose", "swapaxes", "swapdims", "diagonal",
      "roll", "t", "diag_embed")  # fmt: skip
def _rearrange(func, args, kwargs, level):
    name, x, rest = _name(func), args[0], list(args[1:])
    if not batched_at(x, level.number):
        return NotImplemented
    v, rank = x._value, x.dim()
    if name == "squeeze" and rank and not rest and not kwargs:
        return wrap(v.squeeze(tuple(d + 1 for d in range(rank) if x.shape[d] == 1)), level.number)
    if rank == 0 and name in ("squeeze", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis"):
        for d in (d for d in (*rest, *kwargs.values()) if isinstance(d, int)):
            if name == "squeeze" and d not in (0, -1):
                raise RuntimeError(
                    f"Dimension is out of range (expected to be in range of [-1, 0], but got {d})"
                )
            _shift(d, 0)
        return wrap(v.view(v.shape) if name == "squeeze" else v, level.number)
    if name == "t":
        return wrap(v.transpose(1, 2) if rank == 2 else v, level.number)
    if name in ("permute", "flip"):
        dims = _sizes(rest, kwargs, "dims")
        moved = tuple(_shift(d, rank) for d in dims)
        return wrap(v.permute(0, *moved) if name == "permute" else v.flip(moved), level.number)
    if name == "squeeze":
        dims = rest[0] if rest else kwargs.get("dim")
        if dims is None:
            dims = tuple(d for d in range(rank) if x.shape[d] == 1)
        return wrap(v.squeeze(tuple(_shifts((dims,) if isinstance(dims, int) else dims, rank))), level.number)
    if name == "flatten":
        given = _given(("input", "start_dim", "end_dim"), args, kwargs)
        if rank == 0:
            return wrap(v.unsqueeze(1), level.number)
        first, last = (_shift(given.get(k, d), rank) for k, d in (("start_dim", 0), ("end_dim", -1)))
        return wrap(v.flatten(first, last), level.number)
    if name in ("movedim", "moveaxis"):
        given = _given(("input", "source", "destination"), args, kwargs)
        return wrap(
            v.movedim(_shifts(given["source"], rank), _shifts(given["destination"], rank)), level.number
        )
    if name in ("transpose", "swapaxes", "swapdims"):
        given = list(rest) + [kwargs[k] for k in ("dim0", "dim1", "axis0", "axis1") if k in kwargs]
        return wrap(v.transpose(*(_shift(d, rank) for d in given)), level.number)
    if name == "diagonal":
        given = _given(("input", "offset", "dim1", "dim2"), args, kwargs)
        dims = (_shift(given.get(k, d), rank) for k, d in (("dim1", 0), ("dim2", 1)))
        return wrap(v.diagonal(given.get("offset", 0), *dims), level.number)
    if name == "roll":
        given = _given(("input", "shifts", "dims"), args, kwargs)
        dims = given.get("dims", ())
        if dims == ():
            return wrap(
                v.reshape(v.shape[0], x.numel()).roll(given["shifts"], 1).reshape(v.shape), level.number
            )
        return wrap(v.roll(given["shifts"], _shifts(dims, rank)), level.number)
    if rest or kwargs:
        return NotImplemented
    return wrap(rl.diag_embed(v), level.number)


@rule("unfold")
def _unfold(func, args, kwargs, level):
    if func is rl.nn.functional.unfold:  # im2col: another op of the same name
        return NotImplemented
    given = _given(("input", "dimension", "size", "step"), args, kwargs)
    x = given["input"]
    if not x.dim():
        return NotImplemented
    return wrap(
        x._value.unfold(_shift(given["dimension"], x.dim()), given["size"], given["step"]), level.number
    )


@rule("new_empty_strided")
def _new_empty_strided(func, args, kwargs, level):
    given = _given(("input", "size", "stride"), args, kwargs)
    x, size, stride = given.pop("input"), given.pop("size"), given.pop("stride")
    if not batched_at(x, level.number):
        return NotImplemented
    each = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    return wrap(
        x._value.new_empty_strided((level.size, *size), (each, *stride), **given),
        level.number,
    )


def _last(size, stride, offset):
    """The last element in memory of a tensor; None when it has no elements."""
    if 0 in size:
        return None
    return offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


@rule("as_strided")
def _as_strided(func, args, kwargs, level):
    """Offsets count from where the memory of the first sample does; every other sample is moved by the batch's stride."""
    given = _given(("input", "size", "stride", "storage_offset"), args, kwargs)
    x, size, stride = given["input"], tuple(given["size"]), tuple(given["stride"])
    if len(size) != len(stride):
        raise RuntimeError(
            f"size and stride must have the same length! Got size {list(size)} but stride {list(stride)}."
        )
    v = x._value
    first, offset = v.storage_offset(), given.get("storage_offset")
    offset = first if offset is None else offset
    end, own = _last(size, stride, offset), _last(x.shape, v.stride()[1:], first)
    if end is not None and (own is None or end > own or offset < first):
        raise RuntimeError(
            f"vmap: as_strided({list(size)}, {list(stride)}, {offset}) can access memory outside of the sample, whose "
            f"sizes are {list(x.shape)}, strides {list(v.stride()[1:])} and offset {first}. This is not supported inside "
            "of vmap: call as_strided on the whole batch, outside"
        )
    return wrap(v.as_strided((level.size, *size), (v.stride(0), *stride), offset), level.number)


@rule("_is_all_true", "_is_any_true")
def _of_all_samples(func, args, kwargs, level):
    """Questions about all samples at once."""
    return func(args[0]._value)


@rule("view_as_complex")
def _view_as_complex(func, args, kwargs, level):
    if not args[0].dim():
        raise RuntimeError("Input tensor must have one or more dimensions")
    return wrap(func(args[0]._value), level.number)


@rule("tril", "triu", "linalg.inv", "inverse", "linalg.det", "det", "linalg.slogdet", "slogdet", "linalg.cholesky",
      "linalg.eigh", "linalg.eigvalsh", "linalg.qr", "linalg.svd", "linalg.svdvals", "linalg.eig", "adjoint",
      "linalg.matrix_exp", "matrix_exp",
      "constant_pad_nd", "pixel_shuffle", "pixel_unshuffle")  # fmt: skip
def _trailing(func, args, kwargs, level):
    """Functions of the last dimensions, with any number of others in front."""
    return _wrapped(func(args[0]._value, *args[1:], **kwargs), level)


@rule("cat", "concat", "concatenate", "stack")
def _join(func, args, kwargs, level):
    given = _given(("tensors", "dim"), args, kwargs)
    parts, dim = given["tensors"], given.get("dim", 0)
    if _name(func) != "stack" and len({p.dim() for p in parts}) > 1:  # tensors of no elements fit everything
        parts = [p for p in parts if tuple(p.shape) != (0,)]
    rank = max(p.dim() for p in parts) + (_name(func) == "stack")
    full = [physical(p, level.number, level.size) for p in parts]
    return wrap(func(full, _shift(dim, rank)), level.number)


# products
