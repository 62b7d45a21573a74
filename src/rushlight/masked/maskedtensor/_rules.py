"""How each op computes on masked tensors: rule(name, function, args, kwargs) -> Part, or several.

Arguments have Parts (data and mask) instead of masked tensors.
"""

import rushlight as rl
from rushlight._C import Tensor
from rushlight.masked import _ops
from rushlight.masked.maskedtensor._record import Part
from rushlight.masked.maskedtensor.binary import BINARY_NAMES
from rushlight.masked.maskedtensor.reductions import REDUCE_NAMES
from rushlight.masked.maskedtensor.unary import UNARY_NAMES

# What looks at the wrapper alone.
METADATA = frozenset(["dim", "ndimension", "size", "stride", "storage_offset", "numel", "nelement", "is_complex", "is_floating_point", "is_signed", "element_size", "get_device", "is_inference", "requires_grad_", "retain_grad", "register_hook", "backward", "result_type", "can_cast", "is_same_size", "_run_backward", "item", "__bool__", "__float__", "__int__", "__index__", "__len__", "__hash__", "register_post_accumulate_grad_hook"])  # fmt: skip
# Rearrange elements: the mask goes through them as the data do.
_REARRANGING = [
    "select",
    "transpose",
    "split",
    "t",
    "slice",
    "slice_backward",
    "select_backward",
    "index",
    "expand",
    "view",
    "_unsafe_view",
    "_reshape_alias",
    "cat",
    "unsqueeze",
    "unfold",
    "unfold_backward",
    "im2col",
    "col2im",
    "stack",
    "__getitem__",
    "reshape",
    "flatten",
    "permute",
    "squeeze",
    "unbind",
    "movedim",
    "T",
    "_T",
    "mT",
    "_mT",
    "H",
    "swapaxes",
    "swapdims",
    "chunk",
    "narrow",
    "unflatten",
    "expand_as",
    "view_as",
    "reshape_as",
    "concat",
    "concatenate",
    "flip",
    "roll",
    "repeat",
    "repeat_interleave",
    "index_select",
    "detach",
    "clone",
    "detach_",
    "alias",
    "tile",
    "hstack",
    "vstack",
]
_CASTS = [
    "float",
    "double",
    "half",
    "int",
    "long",
    "short",
    "char",
    "bool",
    "cpu",
    "to",
    "type",
    "_to_copy",
    "type_as",
]


def _data(value):
    return value.data if isinstance(value, Part) else value


def _mapped(value, function):
    if isinstance(value, Part):
        return function(value)
    if isinstance(value, tuple | list):
        return type(value)([_mapped(v, function) for v in value])
    return {k: _mapped(v, function) for k, v in value.items()} if isinstance(value, dict) else value


def _entries(data):
    """What an elementwise op acts on: the values of a sparse tensor."""
    return data._entries if data.layout is not rl.strided else data


def _of_entries(like, entries):
    return like._with(entries) if like.layout is not rl.strided else entries


def _elementwise(name, func, args, kwargs):
    """On the data of all arguments, whose masks must be one."""
    parts = [a for a in (*args, *kwargs.values()) if isinstance(a, Part)]
    first = parts[0]
    for other in parts[1:]:
        _check_match(first.mask, other.mask)
    sparse = first.data.layout is not rl.strided

    def entries(p):
        return _entries(p.data)

    if sparse and any(isinstance(a, Tensor) and a.dim() for a in args):
        raise TypeError(
            f"{name} of a masked tensor of sparse data and a plain tensor is not supported: both need the layout"
        )
    out = func(*_mapped(args, entries), **_mapped(kwargs, entries))
    return Part(_of_entries(first.data, out) if sparse else out, first.mask)


def _check_match(a, b):
    from rushlight.masked.maskedtensor.core import _tensors_match

    if a.layout is not b.layout or a.shape != b.shape or not _tensors_match(a, b):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )


def _rearranged(name, func, args, kwargs):
    def masked(p):
        return p.mask

    data, mask = (func(*_mapped(args, part), **_mapped(kwargs, part)) for part in (_data, masked))
    if isinstance(data, tuple | list):
        return tuple(Part(d, m) for d, m in zip(data, mask, strict=True))
    return Part(data, mask)


def _windows(name, func, args, kwargs):
    """nn.functional.unfold and fold, which take floats: those of the mask are counted."""
    data = func(*_mapped(args, _data), **_mapped(kwargs, _data))

    def counts(p):
        return p.mask.to(p.data.dtype)

    return Part(data, func(*_mapped(args, counts), **_mapped(kwargs, counts)) != 0)


def _unfold(name, func, args, kwargs):
    windows = len(args) + len(kwargs) < 4 or "kernel_size" in kwargs
    return (_windows if windows and args[0].data.dim() == 4 else _rearranged)(name, func, args, kwargs)


def _cast(name, func, args, kwargs):
    part = args[0]
    data = func(*_mapped(args, _data), **_mapped(kwargs, _data))
    return Part(data, part.mask.to(data.device))


_TAKES = {  # the parameters behind input
    **dict.fromkeys(("sum", "mean", "prod"), ("dim", "keepdim", "dtype")),
    **dict.fromkeys(("amin", "amax", "argmin", "argmax", "all"), ("dim", "keepdim")),
    "norm": ("ord", "dim", "keepdim", "dtype"),
    **dict.fromkeys(("var", "std"), ("dim", "unbiased", "keepdim", "correction")),
}


def _reduced(name, func, args, kwargs):
    part, given = args[0], dict(zip(_TAKES[name], args[1:], strict=False))
    if name in ("var", "std") and isinstance(given.get("dim"), bool):
        given = {"unbiased": given["dim"]}
    given.update({"ord" if k == "p" else k: v for k, v in kwargs.items()})
    data, mask = part.data, part.mask
    if data.layout is not rl.strided:
        data, mask = data.to_dense(), mask.to_dense()
    dim, keepdim = given.get("dim"), given.get("keepdim", False)
    dims = _ops._dims(dim, data.dim())
    if name == "all":
        found = (data.bool() | ~mask).all(dims, keepdim) if dims else data.bool() | ~mask
    else:
        if name == "norm":
            given["ord"] = 2.0 if given.get("ord", "fro") in (None, "fro") else given["ord"]
        found = getattr(_ops, name)(data, mask=mask, **given)
    if name.startswith("arg"):
        found = found.to(rl.int64)
    return Part(found, mask.any(dims, keepdim) if dims else mask)


def _is_any_true(name, func, args, kwargs):
    part = args[0]
    if part.data.dtype is not rl.bool:
        raise ValueError(f"expected a boolean tensor, got {part.data.dtype}")
    found = (part.data & part.mask).any() if name == "_is_any_true" else (part.data | ~part.mask).all()
    return Part(found, rl.tensor(True))


def _any(name, func, args, kwargs):
    part, given = args[0], dict(zip(("dim", "keepdim"), args[1:], strict=False)) | kwargs
    dims = _ops._dims(given.get("dim"), part.data.dim())
    found, mask = part.data.bool() & part.mask, part.mask
    if not dims:
        return Part(found, mask)
    return Part(*(x.any(dims, given.get("keepdim", False)) for x in (found, mask)))


def _softmax(name, func, args, kwargs):
    given = dict(zip(("dim", "dtype"), args[1:], strict=False)) | kwargs
    given = {k: v for k, v in given.items() if k in ("dim", "dtype") and not isinstance(v, bool)}
    function = _ops.log_softmax if name.lstrip("_") == "log_softmax" else _ops.softmax
    return Part(function(args[0].data, mask=args[0].mask, **given), args[0].mask)


def _where(name, func, args, kwargs):
    given = dict(zip(("condition", "input", "other"), args, strict=False)) | {
        {"self": "input"}.get(k, k): v for k, v in kwargs.items()
    }
    if (
        isinstance(func, type(Tensor.where))
        and isinstance(args[0], Part)
        and args[0].data.dtype is not rl.bool
    ):
        given["condition"], given["input"] = given["input"], given["condition"]  # x.where(condition, other)
    condition = _data(given["condition"])

    def mask(value):
        return value.mask if isinstance(value, Part) else rl.ones((), dtype=rl.bool)

    a, b = given["input"], given["other"]
    return Part(rl.where(condition, _data(a), _data(b)), rl.where(condition, mask(a), mask(b)))


def _like(name, func, args, kwargs):
    """ones_like and its kin: values instead of the data, the same mask."""
    kwargs = {k: v for k, v in kwargs.items() if v is not None and v is not False}
    part = args[0]
    kwargs.pop("layout", None)
    entries = func(_entries(part.data).detach(), *args[1:], **kwargs)
    return Part(_of_entries(part.data, entries), part.mask)


def _copied(name, func, args, kwargs):
    target, source = args[0], args[1]
    if isinstance(source, Part):
        _check_match(target.mask, source.mask)
    target.data.copy_(_data(source))
    return target


def _filled(name, func, args, kwargs):
    func(*_mapped(args, _data), **_mapped(kwargs, _data))
    return args[0]


def _number(name, func, args, kwargs):
    return args[0].data.item()


def _refuse_sparse(part, name):
    if part.data.layout is not rl.strided:
        raise ValueError(f"MaskedTensors with sparse data do not have {name}")


def _contiguous(name, func, args, kwargs):
    _refuse_sparse(args[0], "is_contiguous")
    if name == "is_contiguous":
        return args[0].data.is_contiguous(**kwargs) and args[0].mask.is_contiguous(**kwargs)
    return Part(args[0].data.contiguous(**kwargs), args[0].mask.contiguous(**kwargs))


def _to_dense(name, func, args, kwargs):
    return Part(args[0].data.to_dense(), args[0].mask.to_dense())


def _to_sparse(name, func, args, kwargs):
    layout = kwargs.get("layout", rl.sparse_coo)
    part = args[0]
    if part.data.layout is not rl.strided:
        if part.data.layout is layout:
            return part
        part = _to_dense(name, func, args, kwargs)
    if name == "to_sparse_csr" or layout is rl.sparse_csr:
        mask = part.mask.to_sparse_csr()
    else:
        mask = part.mask.to_sparse().coalesce()
    return Part(part.data.sparse_mask(mask), mask)


_RULES: dict = {
    **dict.fromkeys((*UNARY_NAMES, *BINARY_NAMES, "rsub", "float_power"), _elementwise),
    **dict.fromkeys((f"{n}_" for n in (*UNARY_NAMES, *BINARY_NAMES)), _elementwise),
    **dict.fromkeys((f"__r{n}_op__" for n in ("add", "sub", "mul", "div", "truediv", "floordiv", "pow")), _elementwise),
    **dict.fromkeys(_REARRANGING, _rearranged),
    **dict.fromkeys(REDUCE_NAMES, _reduced),
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), _softmax),
    **dict.fromkeys(("ones_like", "zeros_like", "full_like", "empty_like", "rand_like", "randn_like"), _like),
    **dict.fromkeys(("_is_any_true", "_is_all_true"), _is_any_true),
    **dict.fromkeys(("im2col", "col2im", "fold"), _windows),
    **dict.fromkeys(("fill_", "zero_"), _filled),
    **dict.fromkeys(("contiguous", "is_contiguous"), _contiguous),
    **dict.fromkeys(("to_dense", "_to_dense"), _to_dense),
    **dict.fromkeys(("to_sparse", "_to_sparse", "to_sparse_coo", "to_sparse_csr"), _to_sparse),
    "any": _any,
    "unfold": _unfold,
    "where": _where,
    "_local_scalar_dense": _number,
    "copy_": _copied,
}  # fmt: skip


def rule_of(name):
    """The rule of an op by its name, or None."""
    return _RULES.get(name)
