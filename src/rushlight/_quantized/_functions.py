"""What each op does with quantized tensors. HANDLERS has them by name; whatever is not in it is refused."""

import rushlight as rl
from rushlight._C import Tensor
from rushlight._quantized import _cells, _pooling, _views
from rushlight._quantized import _schemes as schemes
from rushlight._quantized._schemes import PerTensor
from rushlight._quantized._tensor import QuantizedTensor, make, no_kernel


def _values(x):
    return x.dequantize() if isinstance(x, QuantizedTensor) else x


def _requantized(values, q, quantizer=None):
    quantizer = quantizer or q._quantizer
    return make(quantizer.quantize(values, q.dtype), q.dtype, quantizer)


# Copies


def clone(q, *, memory_format=None):
    return q._like(q._ints().clone(**({} if memory_format is None else {"memory_format": memory_format})))


def contiguous(q, memory_format=rl.contiguous_format):
    return q if q.is_contiguous(memory_format=memory_format) else clone(q, memory_format=memory_format)


def detach(q):
    return q._like(q._ints())


def to(q, *args, **kwargs):
    """Another memory format or device; other element types are what dequantize() is for."""
    device, dtype, _, memory_format = rl._C._nn._parse_to(*args, **kwargs)
    if dtype is None and args and isinstance(args[0], Tensor):
        dtype, device = args[0].dtype, args[0].device
    if dtype is not None and dtype is not q.dtype:
        if dtype in schemes.INTEGERS:
            raise RuntimeError(
                "Expected self.scalar_type() == src.scalar_type() to be true, but got false: quantize the result of "
                ".dequantize() for another type"
            )
        _cast(q)
    if device is not None and rl.device(device) != q.device:
        return q._like(q._ints().to(device))
    copy = bool(kwargs.get("copy")) or (len(args) > 3 and bool(args[3]))
    ints = q._ints()
    kept = ints if memory_format is None else ints.to(memory_format=memory_format)
    if kept is ints or (kept.data_ptr() == ints.data_ptr() and kept.stride() == ints.stride()):
        return clone(q, memory_format=memory_format) if copy else q
    return q._like(kept)


def _dense(x):
    formats = [rl.contiguous_format]
    formats += [rl.channels_last] * (x.dim() == 4) + [rl.channels_last_3d] * (x.dim() == 5)
    return [f for f in formats if x.is_contiguous(memory_format=f)]


def copy_(self, src, non_blocking=False):
    if not isinstance(self, QuantizedTensor):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float "
            "Tensor from a quantized Tensor"
        )
    if isinstance(src, QuantizedTensor):
        if src.dtype is not self.dtype:
            raise RuntimeError("Quantized Copy only works with tensors of the same quantized type")
        self._ints().copy_(src._ints())
        self._quantizer = src._quantizer
        return self
    if src.dtype is not rl.float32:
        raise RuntimeError("Quantized copy only works with kFloat as source Tensor")
    if not set(_dense(self)) & set(_dense(src)):
        raise RuntimeError("Quantized copy only works with contiguous and NHWC Tensors")
    self._ints().copy_(self._quantizer.quantize(src.detach().expand(self.shape), self.dtype))
    return self


def fill_(q, value):
    value = float(value.item() if isinstance(value, Tensor) else value)
    q._ints().copy_(q._quantizer.quantize(rl.full(q.shape, value, dtype=rl.float32), q.dtype))
    return q


def _uniform(q, name):
    if type(q._quantizer) is not PerTensor:
        raise RuntimeError(f"{name}: only per-tensor affine quantized tensors are supported.")
    return q._quantizer


def masked_fill_(q, mask, value):
    quantizer = _uniform(q, "masked_fill__quantized_cpu")
    value = float(value.item() if isinstance(value, Tensor) else value)
    q._ints().masked_fill_(mask, int(quantizer.quantize(rl.tensor(value), q.dtype)))
    return q


def index_put_(q, indices, values, accumulate=False):
    quantizer = _uniform(q, "index_put")
    if accumulate:
        raise RuntimeError("index_put for quantized tensors is currently only supported for accumulate=False")
    values = _values(values).float()
    q._ints().index_put_(indices, quantizer.quantize(values, q.dtype))
    return q


def setitem(q, index, value):
    if _views.basic(index):
        target = _views.getitem(q, index)
        if not isinstance(value, Tensor):
            fill_(target, value)
            return
        value = value if isinstance(value, QuantizedTensor) else value.to(rl.float32)
        while value.dim() > target.dim() and value.size(0) == 1:
            value = value[0]
        if isinstance(value, QuantizedTensor) and not value._quantizer.same(target._quantizer):
            value = value.dequantize()  # a part keeps the scale of the whole
        if isinstance(value, QuantizedTensor):
            target._ints().copy_(value._ints())
        else:
            copy_(target, value.expand(target.shape) if value.shape != target.shape else value)
        return
    quantizer = _uniform(q, "index_put")
    value = _values(value) if isinstance(value, Tensor) else rl.tensor(float(value))
    q._ints()[index] = quantizer.quantize(value.float(), q.dtype)


def _out_of_place(change):
    return lambda q, *args, **kwargs: change(clone(q), *args, **kwargs)


def empty_like(
    q, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None
):
    if dtype is not None and dtype is not q.dtype:
        raise RuntimeError(
            "It is currently not supported to specify a dtype that doesn't match the input tensor's dtype via empty_like. "
            f"Specified: {dtype} Input tensor's dtype: {q.dtype}"
        )
    return q._like(rl.empty_like(q._ints(), memory_format=memory_format or rl.preserve_format))


def full_like(q, fill_value, **kwargs):
    return fill_(empty_like(q, **kwargs), fill_value)


def equal(a, b):
    return (
        isinstance(a, QuantizedTensor)
        and isinstance(b, QuantizedTensor)
        and a.dtype is b.dtype
        and a.shape == b.shape
        and a._quantizer.same(b._quantizer)
        and rl.equal(a._ints(), b._ints())
    )


def result_type(a, b):
    return next(t.dtype for t in (a, b) if isinstance(t, QuantizedTensor))


# Compared by their values


def _compare(name):
    def compare(a, b):
        return getattr(_values(a), name)(_values(b))

    return compare


def _isclose(*args, **kwargs):
    raise RuntimeError(
        "isclose is not supported for quantized inputs: compare their dequantize(), or use torch.equal"
    )


# Order: that of the integers is that of the values, if the scale is positive, as with PyTorch it is taken to be


def _ordering(name):
    def find(q, *args, **kwargs):
        found = getattr(q._ints(), name)(*args, **kwargs)
        if isinstance(found, Tensor):
            return q._like(found)
        values, indices = found
        return type(found)((q._like(values), indices))

    return find


def _extreme(name):
    whole = _ordering(name)

    def find(q, *args, **kwargs):
        if args and isinstance(args[0], QuantizedTensor):
            raise no_kernel(f"{name}imum.out")
        _uniform(q, name)
        return whole(q, *args, **kwargs)

    return find


# Activations


def _clamped(q, low, high):
    quantizer = _uniform(q, "clamp")
    ends = [
        None if end is None else int(quantizer.quantize(rl.tensor(float(end)), q.dtype))
        for end in (low, high)
    ]
    return q._like(q._ints().clamp(*ends))


def clamp(q, min=None, max=None):
    return _clamped(q, min, max)


def relu(q):
    _uniform(q, "relu")
    return _clamped(q, 0.0, None)


def relu6(q, inplace=False):
    return _maybe_in_place(q, _clamped(q, 0.0, 6.0), inplace)


def hardtanh(q, min_val=-1.0, max_val=1.0, inplace=False):
    return _maybe_in_place(q, _clamped(q, min_val, max_val), inplace)


def _maybe_in_place(q, result, inplace):
    return _written(q, result) if inplace else result


def _written(q, result):
    q._ints().copy_(result._ints())
    q._quantizer = result._quantizer
    return q


def _in_place(function):
    return lambda q, *args, **kwargs: _written(q, function(q, *args, **kwargs))


def _by_values(function, name):
    """What is computed of the values and quantized with the same scale."""

    def compute(q, *args, **kwargs):
        _uniform(q, name)
        inplace = kwargs.pop("inplace", False)
        return _maybe_in_place(q, _requantized(function(q.dequantize(), *args, **kwargs), q), inplace)

    return compute


def gelu(q, approximate="none"):
    """As PyTorch has it: the scale of the result is one of float32."""
    quantizer = _uniform(q, "gelu")
    scale = rl.tensor(quantizer.scale, dtype=rl.float32).item()
    values = rl.nn.functional.gelu(q.dequantize(), approximate=approximate)
    return _requantized(values, q, PerTensor(scale, quantizer.zero_point))


# Of results in [0, 1) and in [-1, 1), the scales that use all integers.
_UNIT = {rl.quint8: (1 / 256, 0), rl.qint8: (1 / 256, -128), rl.qint32: (1 / 2**32, 0)}
_BOTH_SIDES = {rl.quint8: (2 / 256, 128), rl.qint8: (2 / 256, 0), rl.qint32: (2 / 2**32, 0)}


def _onto(function, name, scales):
    def compute(q, *args, **kwargs):
        _uniform(q, name)
        kwargs.pop("inplace", None)
        return _requantized(function(q.dequantize()), q, PerTensor(*scales[q.dtype]))

    return compute


def flip(q, *dims):
    _uniform(q, "flip")
    return q._like(q._ints().flip(*dims))


_REPEATS = ("repeat", "tile", "roll", "expand", "expand_as", "broadcast_to", "unfold", "as_strided", "index")
_MOVES = ("transpose", "permute", "t", "swapaxes", "swapdims", "movedim", "moveaxis", "adjoint")
_SHAPES = ("reshape", "flatten", "ravel", "unflatten")
_CASTS = ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool", "type_as")
_ASKED = (
    "int_repr", "q_scale", "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points",
    "q_per_channel_axis", "qscheme", "is_signed",
)  # fmt: skip


def _own(name):
    return lambda q: getattr(q, name)()


def dequantize(tensors):
    """The numbers of one tensor, or of each of a list."""
    return tensors.dequantize() if isinstance(tensors, Tensor) else tuple(t.dequantize() for t in tensors)


def view(q, *size):
    if len(size) == 1 and isinstance(size[0], rl.dtype):
        raise RuntimeError(
            "view: a quantized tensor has no view of another type; .int_repr() copies its integers"
        )
    return _views.sized(Tensor.view)(q, *size)


def resize(q, *size):
    """The old name of reshape, which must keep the number of elements."""
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    if rl.Size(size).numel() != q.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, size))} ({rl.Size(size).numel()} elements in total), but the given "
            f"tensor has a size of {'x'.join(map(str, q.shape))} ({q.numel()} elements)"
        )
    return _views.sized(Tensor.reshape)(q, *size)


def _cast(q, *args, **kwargs):
    raise RuntimeError(
        "Creation of quantized tensor requires quantized dtype like torch.quint8: .dequantize() gives the values, "
        ".int_repr() the integers"
    )


def set_(q, *args, **kwargs):
    """Other memory under the tensor: not of one that is quantized."""
    raise no_kernel("set_", instead="torch._make_per_tensor_quantized_tensor makes one of integers")


HANDLERS = {
    **{name: _views.uniform(getattr(Tensor, name)) for name in (*_REPEATS, *_MOVES) if hasattr(Tensor, name)},
    **{name: _views.sized(getattr(Tensor, name)) for name in _SHAPES if hasattr(Tensor, name)},
    **{name: _cast for name in _CASTS},
    **{name: _own(name) for name in _ASKED},
    "dequantize": dequantize,
    "view": view, "view_as": lambda q, other: view(q, other.shape), "resize": resize, "set_": set_,
    "reshape_as": lambda q, other: _views.sized(Tensor.reshape)(q, other.shape),
    **{name: _compare(name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "__eq__", "__ne__")},
    "select": _views.select, "narrow": _views.narrow, "unsqueeze": _views.unsqueeze, "squeeze": _views.squeeze,
    "unbind": _views.unbind, "split": _views.split, "split_with_sizes": _views.split, "chunk": _views.chunk,
    "__getitem__": _views.getitem, "__setitem__": setitem, "index_select": _views.index_select,
    "cat": _views.cat, "concat": _views.cat, "concatenate": _views.cat, "stack": _views.stack,
    "resize_": _views.resize_, "clone": clone, "contiguous": contiguous, "detach": detach, "alias": detach, "to": to,
    "cpu": lambda q, *args, **kwargs: q, "copy_": copy_, "fill_": fill_, "masked_fill_": masked_fill_,
    "masked_fill": _out_of_place(masked_fill_), "index_put_": index_put_, "index_put": _out_of_place(index_put_),
    "empty_like": empty_like, "full_like": full_like, "ones_like": lambda q, **kwargs: full_like(q, 1, **kwargs),
    "equal": equal, "allclose": _isclose, "isclose": _isclose, "result_type": result_type,
    "sort": _ordering("sort"), "topk": _ordering("topk"), "max": _extreme("max"), "min": _extreme("min"),
    "clamp": clamp, "clip": clamp, "clamp_": _in_place(clamp), "hardtanh": hardtanh, "hardtanh_": _in_place(hardtanh),
    "relu": lambda q, inplace=False: _maybe_in_place(q, relu(q), inplace), "relu_": _in_place(relu), "relu6": relu6,
    "sigmoid": _onto(rl.sigmoid, "sigmoid", _UNIT), "tanh": _onto(rl.tanh, "tanh", _BOTH_SIDES),
    "hardsigmoid": _onto(rl.nn.functional.hardsigmoid, "hardsigmoid", _UNIT),
    "mean": _by_values(rl.mean, "mean"), "std": _by_values(rl.std, "std"), "flip": flip, "gelu": gelu,
    **{
        name: _by_values(getattr(rl.nn.functional, name), name)
        for name in ("leaky_relu", "threshold", "dropout")
    },
    **_pooling.HANDLERS,
    "quantized_batch_norm": _cells.batch_norm,
}  # fmt: skip
HANDLERS["leaky_relu_"] = _in_place(HANDLERS["leaky_relu"])
HANDLERS["threshold_"] = _in_place(HANDLERS["threshold"])


def _attribute(name):
    def moved(ints):
        return getattr(ints, name)

    return property(_views.uniform(moved))


for _name in ("T", "mT", "H", "mH"):
    setattr(QuantizedTensor, _name, _attribute(_name))
