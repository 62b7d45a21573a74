"""What PyTorch takes apart into primitives before __torch_dispatch__ sees it: {name of the op: a function}.

Only ops of the extension need a rule; functions composed in Python are taken apart by running.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl

from .. import _C
from ..ops import namespace, run_plain
from . import call_overload

RULES: dict = {}
_END = 2**63 - 1
aten = namespace("aten")


def rule(*names):
    def register(function):
        for name in names:
            RULES[name] = function
        return function

    return register


def _primitive(name, overload, *args, **kwargs):
    return call_overload(getattr(getattr(aten, name), overload), args, kwargs)


@rule("item", "_local_scalar_dense")
def _item(x):
    if x.numel() != 1:
        raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
    return _primitive("_local_scalar_dense", "default", x)


@rule("tensor")
def _tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    if isinstance(data, _C.Tensor) and not run_plain(_has_values, data):
        return NotImplemented
    made = run_plain(_C.ops["tensor"], data, dtype=dtype, device="cpu")
    lifted = _primitive("lift_fresh", "default", made)
    device = rl.get_default_device() if device is None else rl.device(device)
    if device.type != "cpu":
        lifted = _primitive("_to_copy", "default", lifted, device=device)
    return lifted.requires_grad_() if requires_grad else lifted


def _has_values(x):
    return type(x) is _C.Tensor and not x.is_meta


@rule("full")
def _full(size, fill_value, **options):
    if not isinstance(fill_value, _C.Tensor):
        return NotImplemented
    return rl.full(size, fill_value.item(), **{"dtype": fill_value.dtype, **options})


@rule("tolist")
def _tolist(x):
    return _refused(x, "tolist")


@rule("numpy")
def _numpy(x, *, force=False):
    return _refused(x, "numpy")


def _refused(x, name):
    if x._has_memory():
        return NotImplemented
    raise RuntimeError(f".{name}() is not supported for tensor subclasses.")


@rule("__bool__", "is_nonzero")
def _bool(x):
    if x.numel() != 1:
        what = "no values" if x.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(_item(x))


RULES["__float__"] = lambda x: float(_item(x))
RULES["__int__"] = lambda x: int(_item(x))
RULES["__index__"] = lambda x: int(_item(x))
RULES["_assign"] = lambda name, x, result: x.copy_(result)
RULES["_write_out"] = lambda name, target, result, exact=False: target.copy_(result)
RULES["detach_"] = lambda x: _detach_(x)
RULES["_T"] = lambda x: x.permute(list(range(x.dim() - 1, -1, -1)))
RULES["_mT"] = lambda x: x.transpose(-2, -1)
RULES["_H"] = lambda x: x.transpose(0, 1).conj() if x.is_complex() else x.transpose(0, 1)
RULES["adjoint"] = lambda x: x.transpose(-2, -1).conj() if x.is_complex() else x.transpose(-2, -1)
RULES["__radd_op__"] = lambda x, other: x.add(other)
RULES["__rmul_op__"] = lambda x, other: x.mul(other)
RULES["__rsub_op__"] = lambda x, other: _C.ops["rsub"](x, other)
RULES["__rdiv_op__"] = lambda x, other: x.reciprocal().mul(other)
RULES["__rpow_op__"] = lambda x, other: _C.ops["pow"](other, x)
RULES["expand_as"] = lambda x, other: x.expand(other.shape)
RULES["view_as"] = lambda x, other: x.view(other.shape)
RULES["reshape_as"] = lambda x, other: x.reshape(other.shape)
RULES["square"] = lambda x: x.pow(2)


def _detach_(x):
    if run_plain(_C.Tensor._is_view, x):
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, keep the views out of it"
        )
    before = _C.ops["_set_torch_dispatch"](False)
    try:
        return x.detach_()
    finally:
        _C.ops["_set_torch_dispatch"](before)


@rule("nn.functional.linear", "linear")
def _linear(input, weight, bias=None):
    if bias is None:
        return rl.matmul(input, weight.t())
    if input.dim() == 2:
        return rl.addmm(bias, input, weight.t())
    if input.dim() == 3 and input.is_contiguous():
        flat = input.view(input.shape[0] * input.shape[1], input.shape[2])
        return rl.addmm(bias, flat, weight.t()).view(*input.shape[:2], weight.shape[0])
    return rl.matmul(input, weight.t()) + bias


@rule("matmul")
def _matmul(a, b):
    if a.dim() == 0 or b.dim() == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {a.dim()}D and {b.dim()}D"
        )
    if a.dim() == 1 and b.dim() == 1:
        return rl.dot(a, b)
    if a.dim() == 2 and b.dim() == 1:
        return rl.mv(a, b)
    if a.dim() == 1 and b.dim() == 2:
        return rl.mm(a.unsqueeze(0), b).squeeze(0)
    if a.dim() == 2 and b.dim() == 2:
        return rl.mm(a, b)
    if a.dim() >= 3 and b.dim() <= 2:
        rows = a.reshape(-1, a.shape[-1])
        out = rl.mv(rows, b) if b.dim() == 1 else rl.mm(rows, b)
        return aten._unsafe_view(out, [*a.shape[:-1], *b.shape[1:]])
    vector, columns = a.dim() == 1, b.dim() == 1
    a = a.unsqueeze(0) if vector else a
    b = b.unsqueeze(1) if columns else b
    batch = rl.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = a.expand(*batch, *a.shape[-2:]).reshape(-1, *a.shape[-2:])
    y = b.expand(*batch, *b.shape[-2:]).reshape(-1, *b.shape[-2:])
    out = aten._unsafe_view(rl.bmm(x, y), [*batch, a.shape[-2], b.shape[-1]])
    return out.squeeze(-2) if vector else out.squeeze(-1) if columns else out


def _plain_shape(x, shape):
    """The shape without -1, and whether it is a view of x."""
    stand_in = run_plain(_C.ops["empty_strided"], tuple(x.shape), x.stride(), dtype=x.dtype, device="meta")
    whole = run_plain(_C.ops["reshape"], stand_in, shape)
    try:
        run_plain(_C.Tensor.view, stand_in, shape)
    except RuntimeError:
        return list(whole.shape), False
    return list(whole.shape), True


def _shape(sizes):
    return tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else tuple(sizes)


@rule("reshape")
def _reshape(x, *shape, **named):
    sizes, is_view = _plain_shape(x, _shape(shape or (named["shape"],)))
    if is_view:
        return x.view(sizes)
    return aten._unsafe_view(x.clone(memory_format=rl.contiguous_format), sizes)


@rule("flatten")
def _flatten(x, start_dim=0, end_dim=-1):
    if x.dim() == 0:
        return x.reshape(1)
    start, end = start_dim % x.dim(), end_dim % x.dim()
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return x
    sizes = list(x.shape)
    product = 1
    for n in sizes[start : end + 1]:
        product *= n
    return x.reshape([*sizes[:start], product, *sizes[end + 1 :]])


@rule("contiguous")
def _contiguous(x, memory_format=None):
    wanted = rl.contiguous_format if memory_format is None else memory_format
    return x if x.is_contiguous(memory_format=wanted) else x.clone(memory_format=wanted)


def _copied(x, dtype=None, device=None, copy=False, memory_format=None):
    given = {}
    if dtype is not None and dtype != x.dtype:
        given["dtype"] = dtype
    if device is not None and rl.device(device) != x.device:
        given["device"] = rl.device(device)
    if not given and not copy:
        return x
    if memory_format is not None:
        given["memory_format"] = memory_format
    return _primitive("_to_copy", "default", x, **given)


@rule("to")
def _to(x, *args, **kwargs):
    op: Any = _C.Tensor.to
    index, slots, _ = op._bind((x, *args), kwargs)
    names = [p[0] for p in op._overloads[index][0]]
    given = dict(zip(names, slots, strict=True))
    given.pop("non_blocking", None)
    given.pop("input", None)
    if (other := given.pop("other", None)) is not None:
        given.update(dtype=other.dtype, device=other.device)
    return _copied(x, **given)


RULES["type_as"] = lambda x, other: _copied(x, dtype=other.dtype)
for _name, _type in {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
}.items():  # fmt: skip
    RULES[_name] = lambda x, memory_format=None, _type=_type: _copied(
        x, dtype=getattr(rl, _type), memory_format=memory_format
    )


def _normalized(name):
    def softmax(input, dim, dtype=None, **ignored):
        x = input if dtype is None else input.to(dtype)
        return _primitive(name, "default", x, dim, False)

    return softmax


RULES["softmax"] = _normalized("_softmax")
RULES["log_softmax"] = _normalized("_log_softmax")


@rule("nn.functional.dropout", "dropout")
def _dropout(input, p=0.5, training=True, inplace=False, *, train=None):
    training = training if train is None else train
    if not training or p == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    keep = rl.empty_like(input, requires_grad=False).bernoulli_(1 - p).div_(1 - p)
    return input.mul_(keep) if inplace else input * keep


def _steps(x, index):
    """(views to take, {dimension: tensor}) of x[index]."""
    items = list(index) if isinstance(index, tuple) else [index]
    items = [rl.tensor(i) if isinstance(i, (list, range)) else i for i in items]
    taken = sum(
        i.dim() if isinstance(i, _C.Tensor) and i.dtype in (rl.bool, rl.uint8) else 1
        for i in items
        if i is not None and i is not Ellipsis and not isinstance(i, bool)
    )
    if not any(i is Ellipsis for i in items) and taken < x.dim():
        items.append(Ellipsis)
    dim, advanced = 0, {}
    for item in items:
        if item is Ellipsis:
            dim += x.dim() - dim - _later(items, item)
        elif item is None:
            x = x.unsqueeze(dim)
            dim += 1
        elif isinstance(item, bool):
            x = x.unsqueeze(dim)
            advanced[dim] = rl.tensor([item])
            dim += 1
        elif isinstance(item, slice):
            if item.step is not None and item.step <= 0:
                raise ValueError("step must be greater than zero")
            start, end = item.start or 0, _END if item.stop is None else item.stop
            more = () if item.step in (None, 1) else (item.step,)
            x = _primitive("slice", "Tensor", x, dim, int(start), int(end), *more)
            dim += 1
        elif isinstance(item, _C.Tensor):
            advanced[dim] = item
            dim += item.dim() if item.dtype in (rl.bool, rl.uint8) else 1
        else:
            i = item.__index__()
            if not -x.shape[dim] <= i < x.shape[dim]:
                raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {x.shape[dim]}")
            x = _primitive("select", "int", x, dim, i)
    return x, advanced


def _later(items, item):
    """Dimensions that the items after the ellipsis take."""
    at = next(i for i, other in enumerate(items) if other is item)
    return sum(
        i.dim() if isinstance(i, _C.Tensor) and i.dtype in (rl.bool, rl.uint8) else 1
        for i in items[at + 1 :]
        if i is not None and not isinstance(i, bool)
    )


def _indices(advanced):
    return [advanced.get(d) for d in range(max(advanced) + 1)]


@rule("__getitem__")
def _getitem(x, index):
    y, advanced = _steps(x, index)
    if not advanced:
        return _primitive("alias", "default", x) if y is x else y
    return _primitive("index", "Tensor", y, _indices(advanced))


@rule("__setitem__")
def _setitem(x, index, value):
    y, advanced = _steps(x, index)
    if not isinstance(value, _C.Tensor):
        value = rl.tensor(value, dtype=x.dtype, device=x.device)
    if advanced:
        _primitive("index_put_", "default", y, _indices(advanced), value)
    else:
        while value.dim() > y.dim() and value.shape[0] == 1:
            value = value.squeeze(0)
        y.copy_(value)
    return True


@rule("nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d", "conv1d", "conv2d", "conv3d")
def _conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    n = weight.dim() - 2

    def each(value):
        return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)] * n

    if isinstance(padding, str):
        return NotImplemented
    return _primitive(
        "convolution", "default", input, weight, bias, each(stride), each(padding), each(dilation), False, [0] * n, groups
    )  # fmt: skip
