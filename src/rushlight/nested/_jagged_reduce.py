"""Reductions and normalisations of jagged tensors."""

import rushlight as rl
from rushlight.nested import _pad
from rushlight.nested._jagged import _with, handles, of_parts, unbind
from rushlight.nested._ragged_size import NestedInt
from rushlight.nested._tensor import Nested, wrapped


def _elements(x):
    """All values that belong to a sequence, in any shape."""
    if x._lengths is None and x._held.size(x._ragged_idx - 1) == int(x._offsets[-1]):
        return x._held
    return x._held.index_select(x._ragged_idx - 1, _pad.positions(x, 1)[0])


def _fill(name, dtype):
    """What does not change a reduction when it is filled in."""
    if name in ("any", "sum", "mean"):
        return 0
    if name in ("all", "prod"):
        return 1
    low = name in ("amax", "max", "argmax")
    if dtype is rl.bool:
        return not low
    if dtype.is_floating_point:
        return float("-inf") if low else float("inf")
    return rl.iinfo(dtype).min if low else rl.iinfo(dtype).max


def _reduced(x, name, dim, keepdim, options):
    function = getattr(rl, name)
    if dim is None or (dim == () and name in ("amax", "amin", "sum", "mean")):
        if name in ("amax", "amin"):
            options = {**options, "keepdim": False}
        result = function(_elements(x), **options)
        return result.reshape((1,) * x.dim()) if keepdim else result
    single = isinstance(dim, int)
    dims = sorted({wrapped(d, x.dim()) for d in ((dim,) if single else dim)})
    ragged = x._ragged_idx
    if 0 in dims:
        if ragged not in dims:
            raise RuntimeError(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors: "
                "to_padded_tensor(0) first"
            )
        inner = [d - 1 for d in dims[1:]]
        result = function(_elements(x), inner[0] if len(inner) == 1 else inner, keepdim=keepdim, **options)
        return result.unsqueeze(0) if keepdim else result
    if ragged in dims:
        if len(dims) > 1:
            raise RuntimeError(
                f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors: reduce one after "
                "the other"
            )
        if x._lengths is not None:
            raise RuntimeError(
                f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes: call "
                "contiguous() first"
            )
        return _over_sequences(x, name, keepdim, options)
    inner = [d - 1 for d in dims]
    result = function(x._held, inner[0] if single else inner, keepdim=keepdim, **options)
    at = ragged if keepdim else ragged - sum(d < ragged for d in dims)
    if isinstance(result, tuple):
        return type(result)([_with(x, r, at) for r in result])
    return _with(x, result, at)


def _over_sequences(x, name, keepdim, options):
    at = x._ragged_idx
    if name in ("sum", "mean"):
        values = x._held.movedim(at - 1, 0)
        dtype = options.get("dtype")
        values = values if dtype is None else values.to(dtype)
        if name == "sum" and not values.is_floating_point() and not values.is_complex():
            values = values.to(rl.int64 if dtype is None else dtype)
        lengths = x._offsets.diff().to(rl.int64)
        values = values if int(x._offsets[0]) == 0 else values[int(x._offsets[0]) :]
        row = rl.repeat_interleave(rl.arange(lengths.numel()), lengths)
        total = values.new_zeros((x._batch(), *values.shape[1:])).index_add(0, row, values[: row.numel()])
        if name == "mean":
            total = total / lengths.reshape(-1, *(1,) * (total.dim() - 1)).to(total.dtype)
        total = total.movedim(0, 0)
        return total.unsqueeze(at) if keepdim else total
    whole = _pad.padded(x, _fill(name, x.dtype)).movedim(1, at)
    return getattr(rl, name)(whole, at, keepdim=keepdim, **options)


def _register(name):
    def reduce(x, dim=None, keepdim=False, **options):
        if isinstance(dim, Nested):  # maximum of two
            return getattr(rl, name + "imum")(x, dim)
        return _reduced(x, name, dim, keepdim, options)

    handles(name)(reduce)


for _name in ("sum", "mean", "prod", "amax", "amin", "max", "min", "any", "all", "argmax", "argmin"):
    _register(_name)


def _softmax(name):
    def apply(x, dim, dtype=None, **kwargs):
        if not isinstance(dtype, rl.dtype):
            dtype = None
        at = wrapped(dim, x.dim())
        if at == 0:
            raise RuntimeError(
                f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
            )
        function = getattr(rl, name)
        if at != x._ragged_idx:
            return _with(x, function(x._held, at - 1, dtype=dtype))
        if x._lengths is not None:
            raise RuntimeError(
                f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor: call "
                "contiguous() first"
            )
        if x._ragged_idx > 1:
            raise RuntimeError(
                f"{name}(): not supported when reducing along the ragged dimension for ragged_idx > 1 for NestedTensor: transpose it "
                "to dimension 1"
            )
        return _with(x, _pad.unpadded(function(_pad.padded(x, float("-inf")), 1, dtype=dtype), x))

    return apply


handles("softmax", "_softmax")(_softmax("softmax"))
handles("log_softmax", "_log_softmax")(_softmax("log_softmax"))


def _check_norm(x, shape, name):
    if len(shape) >= x.dim():
        raise RuntimeError(
            f"{name}(): not supported when normalizing over the batch dimension for NestedTensor"
        )
    if x.dim() <= 2:
        raise RuntimeError(f"{name}(): not supported for NestedTensor objects with 2 or fewer dimensions")
    over = x.dim() - len(shape) <= x._ragged_idx
    if over and x._lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if operating on the ragged dimension for NestedTensor: call "
            "contiguous() first"
        )
    return over


def _same_shape(x, shape, name):
    own = x.size()[x.dim() - len(shape) :]
    if any(
        (isinstance(n, NestedInt) or isinstance(m, NestedInt)) and n != m
        for n, m in zip(own, shape, strict=True)
    ):
        raise RuntimeError(f"{name}(): expected a normalized_shape that ends x.size(), {own}, got {shape}")


@handles("layer_norm")
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    shape = tuple(normalized_shape)
    if not _check_norm(x, shape, "layer_norm"):
        return _with(x, rl.layer_norm(x._held, shape, weight, bias, eps))
    _same_shape(x, shape, "layer_norm")
    parts = [rl.layer_norm(t, t.shape[t.dim() - len(shape) :], None, None, eps) for t in unbind(x)]
    made = of_parts(parts, x, x._ragged_idx)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


@handles("rms_norm")
def rms_norm(x, normalized_shape, weight=None, eps=None):
    shape = tuple(normalized_shape)
    if not _check_norm(x, shape, "rms_norm"):
        return _with(x, rl.rms_norm(x._held, shape, weight, eps))
    _same_shape(x, shape, "rms_norm")
    made = of_parts(
        [rl.rms_norm(t, t.shape[t.dim() - len(shape) :], None, eps) for t in unbind(x)], x, x._ragged_idx
    )
    return made if weight is None else made * weight
