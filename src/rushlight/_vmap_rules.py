"""How ops run on a whole batch at once: one rule per kind of op. `apply` is what a batched tensor does with a call."""

import rushlight as rl

from . import _C
from ._vmap import RANDOM, Batched, _levels, batched_at, physical, wrap
from .utils._pytree import tree_flatten, tree_unflatten

Tensor = _C.Tensor
RULES: dict = {}
_names: dict = {}  # callable -> its name in the table of ops


def rule(*names):
    def register(function):
        for name in names:
            RULES[name] = function
        return function

    return register


def _name(func):
    if not _names:
        _names.update({f: n for n, f in reversed(_C.ops.items())})
        for n, f in vars(Tensor).items():
            if isinstance(f, _C.OpMethod | type(Tensor.__getitem__)):
                _names.setdefault(f, n)
    return _names.get(func, getattr(func, "__name__", ""))


def _tensors(args, kwargs):
    for a in (*args, *kwargs.values()):
        if isinstance(a, Tensor):
            yield a
        elif isinstance(a, list | tuple):
            yield from (b for b in a if isinstance(b, Tensor))


def apply(func, args, kwargs):
    number = max((t._level for t in _tensors(args, kwargs) if type(t) is Batched), default=0)
    level = next((v for v in _levels.stack if v.number == number), None)
    if level is None:
        raise RuntimeError("vmap: a batched tensor was used after its vmap had ended")
    if kwargs.get("out") is not None:
        raise RuntimeError("vmap: an out= argument cannot hold the results of all samples")
    name = _name(func)
    if getattr(func, "_flags", 0) & RANDOM:
        return random(func, args, kwargs, level)
    found = RULES.get(name)
    if found is None and name.endswith("_") and not name.endswith("__"):
        return _in_place(func, name, args, kwargs, level)
    if found is None and getattr(func, "_flags", 0) & 32 and name not in NOT_POINTWISE:
        found = pointwise
    if found is not None:
        result = found(func, args, kwargs, level)
        if result is not NotImplemented:
            return result
    if hasattr(func, "__wrapped__"):  # composed of other functions
        return func.__wrapped__(*args, **kwargs)
    return per_sample(func, args, kwargs, level)


def _wrapped(result, level):
    if isinstance(result, Tensor):
        return wrap(result, level.number)
    if isinstance(result, tuple) and hasattr(type(result), "n_fields"):  # a named tuple
        return type(result)([_wrapped(r, level) for r in result])
    if isinstance(result, tuple | list):
        return type(result)(_wrapped(r, level) for r in result)
    return result


_backward = rl._C.ops["_run_backward"]


def per_sample(func, args, kwargs, level):
    """Right for every function that does not mix samples, and as slow as a loop."""
    leaves, spec = tree_flatten((args, kwargs))
    runs = []
    for i in range(level.size or 1):
        sample = []
        for x in leaves:
            if batched_at(x, level.number):
                x = x._value.select(0, i) if level.size else x._value.new_zeros(x.shape)
            sample.append(x)
        a, k = tree_unflatten(sample, spec)
        if func is _backward and i + 1 < level.size:
            a = (*a[:2], True, *a[3:])  # the samples share one graph: the last of them may free it
        runs.append(func(*a, **k))

    def join(results):
        first = results[0]
        if isinstance(first, Tensor):
            stacked = rl.stack(results)
            return wrap(stacked if level.size else stacked[:0], level.number)
        if isinstance(first, tuple | list):
            parts = [join(column) for column in zip(*results, strict=True)]
            return type(first)(parts) if hasattr(type(first), "n_fields") else type(first)(p for p in parts)
        return first

    return join(runs)


def _aligned(x, rank, level):
    """The values of x with `rank` dimensions behind the batch, so that they broadcast as samples would."""
    if not batched_at(x, level.number):
        return x
    v = x._value
    missing = rank - (v.dim() - 1)
    return v.reshape(v.shape[0], *(1,) * missing, *v.shape[1:]) if missing > 0 else v


def pointwise(func, args, kwargs, level):
    rank = max(t.dim() for t in _tensors(args, kwargs))
    new = [_aligned(a, rank, level) if isinstance(a, Tensor) else a for a in args]
    named = {k: _aligned(a, rank, level) if isinstance(a, Tensor) else a for k, a in kwargs.items()}
    return _wrapped(func(*new, **named), level)


def _in_place(func, name, args, kwargs, level):
    target, *rest = args
    base = name[:-1]
    op = _C.ops.get(base) or _C.ops.get("nn.functional." + base)
    if not batched_at(target, level.number):
        raise RuntimeError(
            f"vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
            f"extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
            f"`self` not being vmapped over: `{name}` would write one value per sample into one place. Use the "
            f"out-of-place form, `{base}`."
        )
    simple = base in ("zero", "fill", "copy") or (
        op is not None and op._flags & 32 and base not in NOT_POINTWISE
    )
    if simple and all(t.dim() <= target.dim() for t in _tensors(rest, kwargs)):
        new = [_aligned(a, target.dim(), level) if isinstance(a, Tensor) else a for a in rest]
        func(target._value, *new, **kwargs)
        return target
    result = (op or getattr(rl, base))(target, *rest, **kwargs)
    target._value.copy_(physical(result, level.number, level.size))
    return target


def random(func, args, kwargs, level):
    """A function that draws numbers, by the rule of this vmap."""
    if _name(func) in (
        "dropout",
        "alpha_dropout",
        "feature_dropout",
        "feature_alpha_dropout",
        "native_dropout",
    ):
        given = _given(("input", "p", "train"), args, kwargs)
        if not given.get("train", True):
            return pointwise(func, args, kwargs, level) if type(args[0]) is Batched else func(*args, **kwargs)
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    name, mapped = _name(func), any(batched_at(t, level.number) for t in _tensors(args, kwargs))
    if mapped and level.randomness == "different":
        if name in ("dropout", "native_dropout", "bernoulli", "normal", "poisson") or name.endswith("_like"):
            return pointwise(func, args, kwargs, level)
        if name.endswith("_"):
            func(args[0]._value, *args[1:], **kwargs)
            return args[0]
        return per_sample(func, args, kwargs, level)
    if level.randomness == "different":
        return _wrapped(rl.stack([func(*args, **kwargs) for _ in range(level.size)]), level)
    if not mapped:
        return func(*args, **kwargs)
    if name == "dropout":
        return args[0] * func(rl.ones_like(args[0]._value[0]), *args[1:], **kwargs)
    if name.endswith("_like"):
        return func(args[0]._value[0], *args[1:], **kwargs)
    state, runs = rl.get_rng_state(), []

    def again(*a, **k):
        rl.set_rng_state(state)
        runs.append(None)
        return func(*a, **k)

    return per_sample(again, args, kwargs, level)


# Elementwise by their flag (they write straight into a target), but not element by element.
NOT_POINTWISE = frozenset(
    [
        "index_add",
        "index_copy",
        "index_fill",
        "index_put",
        "index_reduce",
        "masked_scatter",
        "put",
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "tril",
        "triu",
        "polygamma",
    ]
)


def _given(names, args, kwargs):
    """Arguments by name; NumPy's spellings count."""
    found = dict(zip(names, args, strict=False))
    for k, v in kwargs.items():
        found[{"axis": "dim", "keepdims": "keepdim", "self": "input", "x": "input"}.get(k, k)] = v
    return found


def _shift(dim, rank):
    """A dimension of a sample as one of the batch."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, {max(rank, 1) - 1}], but got {dim})"
        )
    return dim % max(rank, 1) + 1


def _shifts(dims, rank):
    return _shift(dims, rank) if isinstance(dims, int) else tuple(_shift(d, rank) for d in dims)


# unary ops and those whose arguments are pairs of elements, beyond the ones that say so by their flag
rule(
    *[
        "where",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "logaddexp",
        "logaddexp2",
        "isnan",
        "isinf",
        "isfinite",
        "isposinf",
        "isneginf",
        "isreal",
        "isclose",
        "signbit",
        "float_power",
        "ldexp",
        "rsub",
        "angle",
        "real",
        "imag",
        "conj",
        "positive",
        "threshold",
        "prelu",
        "complex",
        "polar",
        "clone",
        "detach",
        "alias",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "_cast",
        "to",
        "float",
        "double",
        "half",
        "bfloat16",
        "long",
        "int",
        "short",
        "char",
        "byte",
        "bool",
        "cpu",
        "resolve_conj",
        "resolve_neg",
        "frexp",
        "fill",
        "hardshrink",
        "selu",
        "celu",
        "_where_method",
        "type_as",
        "mvlgamma",
    ],
    *(
        "nn.functional." + n
        for n in [
            "celu",
            "elu",
            "gelu",
            "hardshrink",
            "hardsigmoid",
            "hardswish",
            "hardtanh",
            "leaky_relu",
            "logsigmoid",
            "mish",
            "relu",
            "relu6",
            "selu",
            "silu",
            "softplus",
            "softshrink",
            "softsign",
            "tanhshrink",
            "threshold",
        ]
    ),
)(pointwise)


@rule("contiguous")
def _contiguous(func, args, kwargs, level):
    return wrap(args[0]._value.contiguous(), level.number)


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
    place, default = ALONG.get(name, (1, None))
    args = list(args)
    rank = x.dim() + 1 if name == "unsqueeze" else x.dim()
    if rank == 0:
        return NotImplemented
    if (
        len(args) > place
        and name not in ("sort", "argsort")
        or (len(args) > place and isinstance(args[place], int))
    ):
        args[place] = _shift(args[place], rank)
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


@rule("tril", "triu", "linalg.inv", "inverse", "linalg.det", "det", "linalg.slogdet", "slogdet", "linalg.cholesky",
      "linalg.eigh", "linalg.eigvalsh", "linalg.qr", "linalg.svd", "linalg.svdvals", "linalg.eig", "adjoint",
      "constant_pad_nd")  # fmt: skip
def _trailing(func, args, kwargs, level):
    """Functions of the last dimensions, with any number of others in front."""
    return _wrapped(func(args[0]._value, *args[1:], **kwargs), level)


@rule("cat", "concat", "concatenate", "stack")
def _join(func, args, kwargs, level):
    given = _given(("tensors", "dim"), args, kwargs)
    parts, dim = given["tensors"], given.get("dim", 0)
    rank = max(p.dim() for p in parts) + (_name(func) == "stack")
    full = [physical(p, level.number, level.size) for p in parts]
    return wrap(func(full, _shift(dim, rank)), level.number)


# products


@rule("matmul", "mm", "bmm", "linalg.matmul", "mv", "dot", "vdot")
def _matmul(func, args, kwargs, level):
    if kwargs or len(args) != 2:
        return NotImplemented
    a, b = args
    left, right = a.dim() == 1, b.dim() == 1
    if _name(func) == "vdot":
        a = a.conj()
    a = a.unsqueeze(-2) if left else a
    b = b.unsqueeze(-1) if right else b
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[-2]}x{a.shape[-1]} and "
                           f"{b.shape[-2]}x{b.shape[-1]})")  # fmt: skip
    rank = max(a.dim(), b.dim())
    y = rl.matmul(_aligned(a, rank, level), _aligned(b, rank, level))
    y = y.squeeze(-1) if right else y
    y = y.squeeze(-1 if right else -2) if left else y
    return wrap(y, level.number)


@rule("nn.functional.linear")
def _linear(func, args, kwargs, level):
    given = _given(("input", "weight", "bias"), args, kwargs)
    x, w, b = given["input"], given["weight"], given.get("bias")
    if batched_at(w, level.number) or w.dim() != 2:
        y = rl.matmul(x, w.transpose(-2, -1) if w.dim() == 2 else w)
    else:
        if b is None or not batched_at(b, level.number):
            return (
                wrap(func(x._value if batched_at(x, level.number) else x, w, b), level.number)
                if batched_at(x, level.number)
                else NotImplemented
            )
        y = func(x, w)
    return y if b is None else y + b


@rule("addmm", "addmv", "baddbmm", "addr")
def _addmm(func, args, kwargs, level):
    name = _name(func)
    alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
    if len(args) != 3:
        return NotImplemented
    product = rl.outer(args[1], args[2]) if name == "addr" else rl.matmul(args[1], args[2])
    return product.mul(alpha) + args[0].mul(beta) if (alpha, beta) != (1, 1) else product + args[0]


@rule("outer", "ger")
def _outer(func, args, kwargs, level):
    return args[0].unsqueeze(-1) * args[1].unsqueeze(-2)


# indexing


def _as_tuple(index):
    return index if isinstance(index, tuple) else (index,)


@rule("__getitem__")
def _getitem(func, args, kwargs, level):
    x, index = args[0], _as_tuple(args[1])
    mapped = [i for i in index if batched_at(i, level.number)]
    if any(isinstance(i, list) for i in index) or any(t.dtype == rl.bool for t in mapped):
        return NotImplemented
    advanced = [k for k, i in enumerate(index) if isinstance(i, Tensor) and i.dim()]
    if not mapped:
        if advanced and advanced[-1] - advanced[0] + 1 != len(advanced):
            return NotImplemented  # their dimensions would come before the batch
        return wrap(x._value[(slice(None), *index)], level.number)
    if len(index) != len([i for i in index if isinstance(i, Tensor)]):
        return NotImplemented
    # Every index is a tensor: element (b, ...) reads sample b.
    rank = max(i.dim() for i in index)
    full = tuple(_aligned(i, rank, level) for i in index)
    if not batched_at(x, level.number):
        return wrap(x[full], level.number)
    sample = rl.arange(level.size).reshape(level.size, *(1,) * rank)
    return wrap(x._value[(sample, *full)], level.number)


@rule("__setitem__")
def _setitem(func, args, kwargs, level):
    x, index, value = args[0], _as_tuple(args[1]), args[2]
    if not batched_at(x, level.number):
        raise RuntimeError(
            "vmap: x[...] = value is not possible where value (or the index) is mapped and x is not: it would write "
            "one value per sample into one place. Write into a tensor made from a mapped one, like torch.zeros_like(y)."
        )
    if any(isinstance(i, list) or batched_at(i, level.number) for i in index):
        if (
            x._value.requires_grad
            or len(index) != 1
            or index[0].dtype == rl.bool
            or isinstance(index[0], list)
        ):
            raise RuntimeError(
                "vmap: writing at an index that differs from sample to sample is not supported here"
            )
        rank = index[0].dim()
        sample = rl.arange(level.size).reshape(level.size, *(1,) * rank)
        x._value[sample, index[0]._value] = (
            _aligned(value, x.dim(), level) if isinstance(value, Tensor) else value
        )
        return
    target = x._value[(slice(None), *index)]
    if isinstance(value, Tensor):
        value = _aligned(value, target.dim() - 1, level)
    x._value[(slice(None), *index)] = value
    return


@rule("gather", "scatter", "scatter_add", "take_along_dim")
def _gather(func, args, kwargs, level):
    if kwargs and set(kwargs) - {"dim"}:
        return NotImplemented
    given = _given(("input", "dim", "index", "src"), args, kwargs)
    if _name(func) == "take_along_dim" or any(isinstance(g, Tensor) and not g.dim() for g in given.values()):
        return NotImplemented
    dim = _shift(given["dim"], given["input"].dim())
    full = [physical(given["input"], level.number, level.size), dim]
    full += [physical(given[k], level.number, level.size) if isinstance(given[k], Tensor) else given[k]
             for k in ("index", "src") if k in given]  # fmt: skip
    return wrap(func(*full), level.number)


@rule("index_select")
def _index_select(func, args, kwargs, level):
    given = _given(("input", "dim", "index"), args, kwargs)
    x, dim, index = given["input"], given["dim"], given["index"]
    if batched_at(index, level.number) or not batched_at(x, level.number) or not x.dim():
        return NotImplemented
    return wrap(x._value.index_select(_shift(dim, x.dim()), index), level.number)


@rule("embedding")
def _embedding(func, args, kwargs, level):
    weight, index = args[:2]
    if not batched_at(weight, level.number):
        return wrap(func(weight, index._value, *args[2:], **kwargs), level.number)
    if args[2:] not in ((), (-1,), (-1, False), (-1, False, False)) or kwargs:
        return NotImplemented
    return weight[index.long()]


# layers


@rule("layer_norm")
def _layer_norm(func, args, kwargs, level):
    given = _given(("input", "normalized_shape", "weight", "bias", "eps"), args, kwargs)
    x, w, b = given["input"], given.get("weight"), given.get("bias")
    if not batched_at(x, level.number):
        return NotImplemented
    y = wrap(func(x._value, given["normalized_shape"], None, None, given.get("eps", 1e-5)), level.number)
    y = y if w is None else y * w
    return y if b is None else y + b


@rule("group_norm")
def _group_norm(func, args, kwargs, level):
    given = _given(("input", "num_groups", "weight", "bias", "eps"), args, kwargs)
    x, w, b = given["input"], given.get("weight"), given.get("bias")
    if not batched_at(x, level.number):
        return NotImplemented
    v = x._value
    y = func(v.reshape(-1, *v.shape[2:]), given["num_groups"], None, None, given.get("eps", 1e-5))
    y = wrap(y.reshape(v.shape), level.number)
    per_channel = (-1,) + (1,) * (x.dim() - 2)
    y = y if w is None else y * w.reshape(per_channel)
    return y if b is None else y + b.reshape(per_channel)


def _merged(spatial):
    """Functions of (N, C, ...) with `spatial` dimensions behind: samples join the others of the batch."""

    def merged(func, args, kwargs, level):
        x = args[0]
        if not batched_at(x, level.number) or any(
            batched_at(t, level.number) for t in _tensors(args[1:], kwargs)
        ):
            return NotImplemented
        v = x._value
        if x.dim() == spatial + 1:
            return _wrapped(func(v, *args[1:], **kwargs), level)
        lead = tuple(v.shape[:2])
        result = func(v.reshape(-1, *v.shape[2:]), *args[1:], **kwargs)
        apart = lambda t: t.reshape(*lead, *t.shape[1:])  # noqa: E731
        return _wrapped(tuple(map(apart, result)) if isinstance(result, tuple) else apart(result), level)

    return merged


for _d in (1, 2, 3):
    rule(*(f"{p}{_d}d{s}" for p in ("max_pool", "_nn.max_pool", "nn.functional.avg_pool", "avg_pool",
                                    "adaptive_avg_pool", "_nn.adaptive_avg_pool", "_nn.adaptive_max_pool",
                                    "adaptive_max_pool") for s in ("", "_with_indices")))(_merged(_d))  # fmt: skip


@rule("conv1d", "conv2d", "conv3d")
def _conv(func, args, kwargs, level):
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    given = _given(names, args, kwargs)
    x, w, b = given.pop("input"), given.pop("weight"), given.pop("bias", None)
    spatial = w.dim() - 2
    single = x.dim() == spatial + 1
    x = x.unsqueeze(0) if single else x
    number, size = level.number, level.size
    if not size:
        return NotImplemented
    if not batched_at(w, number) and (b is None or not batched_at(b, number)):
        v = x._value
        y = func(v.reshape(-1, *v.shape[2:]), w, b, **given)
        y = wrap(y.reshape(*v.shape[:2], *y.shape[1:]), number)
    elif not batched_at(w, number):
        y = func(x, w, None, **given) + b.reshape(-1, *(1,) * spatial)
    else:  # a group of channels for each sample
        v = physical(x, number, size).movedim(0, 1)  # (N, B, C, ...)
        v = v.reshape(v.shape[0], -1, *v.shape[3:])
        weights = w._value.reshape(-1, *w._value.shape[2:])
        bias = None if b is None else physical(b, number, size).reshape(-1)
        given["groups"] = given.get("groups", 1) * size
        y = func(v, weights, bias, **given)
        y = wrap(y.reshape(y.shape[0], size, -1, *y.shape[2:]).movedim(1, 0), number)
    return y.squeeze(0) if single else y


@rule("_nn.attention")
def _attention(func, args, kwargs, level):
    query, key, value, *rest = args
    if not all(batched_at(t, level.number) and t.dim() == 4 for t in (query, key, value)):
        return NotImplemented
    if len(rest) > 2 or kwargs:  # a mask
        return NotImplemented
    full = [t._value.reshape(-1, *t._value.shape[2:]) for t in (query, key, value)]
    y = func(*full, *rest)
    return wrap(y.reshape(level.size, -1, *y.shape[1:]), level.number)


@rule("_nn.mse_loss", "_nn.binary_cross_entropy")
def _pair_loss(func, args, kwargs, level):
    names = (
        ("input", "target", "reduction")
        if "mse" in _name(func)
        else ("input", "target", "weight", "reduction")
    )
    given = _given(names, args, kwargs)
    reduction = given.pop("reduction", 1)
    full = {
        k: physical(t, level.number, level.size) if isinstance(t, Tensor) else t for k, t in given.items()
    }
    if len({tuple(t.shape) for t in full.values() if isinstance(t, Tensor)}) > 1:
        return NotImplemented
    each = wrap(func(**full, reduction=0), level.number)
    return each if reduction == 0 else each.mean() if reduction == 1 else each.sum()


@rule("_nn.cross_entropy", "_nn.nll_loss_nd")
def _class_loss(func, args, kwargs, level):
    given = _given(("input", "target", "weight", "reduction", "ignore_index"), args, kwargs)
    x, target, reduction = given["input"], given["target"], given.get("reduction", 1)
    ignore = given.get("ignore_index", -100)
    if given.get("weight") is not None or target.is_floating_point() or not level.size:
        return NotImplemented
    v, t = (physical(y, level.number, level.size) for y in (x, target))
    if x.dim() == 1:
        each = func(v, t, None, 0, ignore)
    else:
        each = func(v.reshape(-1, *v.shape[2:]), t.reshape(-1, *t.shape[2:]), None, 0, ignore).reshape(
            t.shape
        )
    each = wrap(each, level.number)
    if reduction == 0:
        return each
    if reduction == 2:
        return each.sum()
    return each.sum() / (target != ignore).sum()
