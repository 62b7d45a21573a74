"""Ops on sparse tensors, by the name of the op."""

import rushlight as rl
from rushlight._tensor import CASTS
from rushlight.sparse._backward import run_backward
from rushlight.sparse._coo import SparseTensor, make

HANDLERS: dict = {"_run_backward": run_backward}


def handles(*names):
    def register(function):
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return register


def is_sparse(x):
    return isinstance(x, SparseTensor)


def _at(dense, sparse):
    """The elements of a dense tensor at a sparse one's places, broadcast to its shape first."""
    return dense.expand(tuple(sparse.shape))[tuple(sparse._places)]


@handles("add")
def add(a, b, *, alpha=1):
    if is_sparse(a) and is_sparse(b):
        a, b = a.to_sparse(), b.to_sparse()
        if a.shape != b.shape:
            raise RuntimeError(
                f"add: expected sizes of 'self' and 'other' to match, but {a.shape} != {b.shape}"
            )
        dtype = rl.promote_types(a.dtype, b.dtype)
        parts = [a._entries.to(dtype), (b._entries * alpha).to(dtype)]
        # As in PyTorch, a sum with an uncoalesced tensor is left uncoalesced: entries in order are merged (unless they
        # are expanded), others stand one behind the other until somebody coalesces them.
        dense = a._entries.is_contiguous() and b._entries.is_contiguous()
        coalesced = a._coalesced and b._coalesced
        if (dense or coalesced) and a._places.shape == b._places.shape and rl.equal(a._places, b._places):
            return make(a._places, parts[0] + parts[1], a.shape, coalesced)
        result = make(rl.cat([a._places, b._places], 1), rl.cat(parts), a.shape)
        if coalesced:
            return result.coalesce()
        if dense and a.sparse_dim() and _ordered(a._keys()) and _ordered(b._keys()):
            return result.coalesce()._coalesced_(False)
        return result
    if is_sparse(a):
        if not isinstance(b, rl.Tensor):
            raise RuntimeError("add(sparse, number) would not be sparse: call .to_dense() first")
        return a.to_dense() + alpha * b
    if a.shape != b.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {tuple(a.shape)} while other has "
            f"size {tuple(b.shape)} (FYI: op requires that there be no broadcasting)"
        )
    return a.index_put(tuple(b._places), (alpha * b._entries).to(a.dtype), accumulate=True)


@handles("__radd_op__")
def radd(a, b):
    return add(b, a)


@handles("sub")
def sub(a, b, *, alpha=1):
    return add(a, b, alpha=-alpha)


@handles("add_")
def add_(a, b, *, alpha=1):
    if not is_sparse(a):
        return a.index_put_(tuple(b._places), (alpha * b._entries).to(a.dtype), accumulate=True)
    return _become(a, add(a, b, alpha=alpha))


@handles("sub_")
def sub_(a, b, *, alpha=1):
    return add_(a, b, alpha=-alpha)


def written(out, result):
    """The result moved into a tensor that is there, which keeps its type."""
    if not rl.can_cast(result.dtype, out.dtype):
        kinds = (x._entries._type_name()[len("torch.") : -len("Tensor")] for x in (result, out))
        raise RuntimeError("result type {} can't be cast to the desired output type {}".format(*kinds))
    return _become(out, result.to(out.dtype))


def in_place(name):
    """The in-place form of an op that acts on the values, or None."""
    if not name.endswith("_") or name[:-1] not in _ZERO_STAYS_ZERO.split():
        return None
    handler = HANDLERS[name[:-1]]

    def apply(a, *args, **kwargs):
        if not a._coalesced:
            raise RuntimeError(f"{name} requires coalesced input")
        return written(a, handler(a, *args, **kwargs))

    return apply


def _become(sparse, result):
    if sparse.layout is not result.layout:
        result = result.to_sparse(layout=sparse.layout)
    sparse.__dict__.update({name: part for name, part in result.__dict__.items() if name != "_own_grad"})
    return sparse


def _ordered(keys):
    """Whether each key is larger than the one before."""
    return keys.numel() < 2 or bool((keys[1:] > keys[:-1]).all())


def _met(a, b):
    """The products of the entries at places where both have one."""
    layout = a.layout
    a, b = a.to_sparse()._summed(), b.to_sparse()._summed()
    keys, others = a._keys(), b._keys()
    if others.numel() == 0:
        found = own = others
    else:
        at = rl.searchsorted(others, keys).clamp_(max=others.numel() - 1)
        own = (others[at] == keys).nonzero().squeeze(1)
        found = at[own]
    entries = a._entries[own] * b._entries[found]
    result = make(a._places[:, own], entries, a.shape, True)
    return result if layout is rl.sparse_coo else result.to_sparse(layout=layout)


@handles("mul", "__rmul_op__")
def mul(a, b):
    if not is_sparse(a) or (is_sparse(b) and a.dim() == 0):
        a, b = b, a
    if is_sparse(b) and b.dim() == 0:
        b = b.to_dense()
    if is_sparse(b):
        if a.shape == b.shape and a.sparse_dim() == b.sparse_dim() > 0:
            return _met(a, b)
        a, b = a._summed(), b.to_dense()
    if isinstance(b, rl.Tensor) and b.dim() > 0:
        a = a._summed()
        return a._with(a._entries * _at(b, a))
    return a._with(a._entries * b)


@handles("div")
def div(a, b, *, rounding_mode=None):
    if not is_sparse(a) or is_sparse(b):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor, or a dense one: got a sparse divisor"
        )
    if rounding_mode is not None:
        a = a._summed()
    if isinstance(b, rl.Tensor) and b.dim() > 0:
        a = a._summed()
        b = _at(b, a)
    return a._with(rl.div(a._entries, b, rounding_mode=rounding_mode))


@handles("floor_divide")
def floor_divide(a, b):
    if not is_sparse(a) or is_sparse(b):
        raise RuntimeError("Sparse floor division requires a scalar or zero-dim dense tensor divisor")
    return div(a, b, rounding_mode="floor")


@handles("mul_")
def mul_(a, b):
    if not is_sparse(a):
        return a.copy_(mul(a, b).to_dense())
    return _become(a, mul(a, b))


@handles("div_")
def div_(a, b, *, rounding_mode=None):
    return _become(a, div(a, b, rounding_mode=rounding_mode))


def _elementwise(name):
    """Ops that leave zero at zero act on the values; the values must be summed up first."""

    def apply(a, *args, **kwargs):
        a = a._summed()
        return a._with(getattr(a._entries, name)(*args, **kwargs))

    return apply


_ZERO_STAYS_ZERO = """
abs asin asinh atan atanh ceil conj erf expm1 floor frac log1p neg relu round sgn sign sin sinh sqrt square tan
tanh trunc deg2rad rad2deg pow isnan isinf positive
"""
_CASTS = "float double half bfloat16 long int short char byte bool cpu contiguous"

for _name in _ZERO_STAYS_ZERO.split():
    HANDLERS[_name] = _elementwise(_name)


@handles("neg_")
def neg_(a):
    return _become(a, a._with(-a._entries))


@handles("zero_")
def zero_(a):
    return _become(a, zeros_like(a))


@handles("clone")
def clone(a, *, memory_format=None):
    made = a._with(a._entries.clone())
    if type(made) is SparseTensor:
        made._places = a._places.clone()
    return made


@handles("detach")
def detach(a):
    return a._with(a._entries.detach())


@handles("detach_")
def detach_(a):
    a._entries = a._entries.detach()
    return a


@handles("to")
def to(a, *args, **kwargs):
    return a._with(a._entries.to(*args, **kwargs))


for _name in (*CASTS, "cpu", "contiguous"):
    HANDLERS[_name] = (lambda name: lambda a, *args, **kwargs: a._with(getattr(a._entries, name)()))(_name)


def _check_sparse(name, input):
    """Functions of torch.sparse that work on entries take sparse tensors only."""
    if not isinstance(input, rl.Tensor):
        raise TypeError(f"sparse.{name}(): argument 'input' must be Tensor, not {type(input).__name__}")
    if input.layout is rl.strided:
        raise RuntimeError(
            f"sparse.{name} expected sparse coordinate tensor layout but got Strided\n"
            f"  Make it sparse, x.to_sparse(), or call torch.{name}, which takes dense tensors."
        )


@handles("sum")
def sum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum of all elements; or over some dimensions, sparse while sparse dimensions are left."""
    _check_sparse("sum", input)
    if dim is None or dim == ():
        return input._entries.sum(dtype=dtype)
    dims = {d % input.dim() for d in ([dim] if isinstance(dim, int) else dim)}
    if keepdim:
        return input.to_dense().sum(tuple(dims), keepdim=True, dtype=dtype).to_sparse()
    kept = [d for d in range(input.sparse_dim()) if d not in dims]
    dense = tuple(d - input.sparse_dim() + 1 for d in dims if d >= input.sparse_dim())
    entries = input._entries.sum(dense, dtype=dtype) if dense else input._entries
    if not kept:
        return entries.sum(0, dtype=dtype)
    size = [n for d, n in enumerate(input.shape) if d not in dims]
    return make(input._places[rl.tensor(kept)], entries, size).coalesce()


@handles("norm", "vector_norm")
def norm(input, p=2, *args, **kwargs):
    if args or any(v is not None and v is not False for v in kwargs.values()):
        raise NotImplementedError("norm of a sparse tensor along dimensions: call .to_dense() first")
    p = 2 if p in (None, "fro") else p
    return rl.linalg.vector_norm(input._summed()._entries, p)


@handles("zeros_like")
def zeros_like(a, *, dtype=None, memory_format=None, **kwargs):
    if memory_format is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    return make(a._places[:, :0], a._entries[:0].to(dtype or a.dtype), a.shape, True)


@handles("empty_like")
def empty_like(a, *, dtype=None, layout=None, memory_format=None, **kwargs):
    if layout not in (None, a.layout):
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {a.layout}, got {layout})"
        )
    return zeros_like(a, dtype=dtype, memory_format=memory_format)


@handles("copy_")
def copy_(a, b, non_blocking=False):
    if a.layout not in (rl.sparse_coo, rl.strided) or b.layout not in (rl.sparse_coo, rl.strided):
        return _copy_compressed(a, b)
    if not is_sparse(b) or not is_sparse(a):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
    if a.shape != b.shape:
        b = b.to_dense().expand(tuple(a.shape)).to_sparse()
    return _become(a, b.to(a.dtype).clone())


def _copy_compressed(a, b):
    """Compressed tensors are copied into others of their layout, shape and number of entries."""
    if a.layout is not b.layout:
        raise RuntimeError("copy of sparse compressed tensors having different layouts is not supported.")
    if a._nnz() != b._nnz():
        raise RuntimeError(
            "only sparse compressed tensors with the same number of specified elements are supported."
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"expected shapes of self and src to match, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    return _become(a, b.to(a.dtype).clone())


@handles("eq", "ne")
def compared(a, b):
    raise NotImplementedError("comparison of sparse tensors: call .to_dense() first")


@handles("is_same_size")
def is_same_size(a, b):
    return a.shape == b.shape


@handles("allclose", "equal")
def equal(a, b, *args, **kwargs):
    a, b = (x.to_dense() if is_sparse(x) else x for x in (a, b))
    return rl.allclose(a, b, *args, **kwargs) if args or kwargs else rl.equal(a, b)


@handles("untyped_storage")
def untyped_storage(a):
    raise NotImplementedError("Cannot access storage of a sparse tensor: it has indices and values")


@handles("is_coalesced")
def is_coalesced(a):
    return a.is_coalesced()


@handles("any")
def any_(a, *args, **kwargs):
    if args or kwargs:
        raise NotImplementedError("any of a sparse tensor along dimensions: call .to_dense() first")
    return a._summed()._entries.any()


@handles("to_sparse_csr")
def _to_csr(a, dense_dim=None):
    return a.to_sparse(layout=rl.sparse_csr)


@handles("to_sparse_bsr")
def _to_bsr(a, blocksize, dense_dim=None):
    return a.to_sparse(layout=rl.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@handles("to_sparse_bsc")
def _to_bsc(a, blocksize, dense_dim=None):
    return a.to_sparse(layout=rl.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@handles("to_sparse_csc")
def _to_csc(a, dense_dim=None):
    return a.to_sparse(layout=rl.sparse_csc)


def _softmax(input, dim, dtype, log):
    a = input._summed()
    entries, dim = a._entries if dtype is None else a._entries.to(dtype), dim % a.dim()
    if dim >= a.sparse_dim():
        over = dim - a.sparse_dim() + 1
        return a._with(entries.log_softmax(over) if log else entries.softmax(over))
    # Entries that agree in all other places are of one group.
    groups, of = rl.unique(a._keys(leave_out=dim), return_inverse=True)
    shape = (groups.numel(), *entries.shape[1:])
    most = entries.new_full(shape, float("-inf")).index_reduce(0, of, entries.detach(), "amax")
    shifted = entries - most[of]
    total = entries.new_zeros(shape).index_add(0, of, shifted.exp())
    return a._with(shifted - total.log()[of] if log else shifted.exp() / total[of])


@handles("softmax")
def softmax(input, dim, *, dtype=None):
    """Softmax along a dimension among the entries that are there; absent ones count as minus infinity."""
    _check_sparse("softmax", input)
    return _softmax(input, dim, dtype, log=False)


@handles("log_softmax")
def log_softmax(input, dim, *, dtype=None):
    """The logarithm of softmax among the entries that are there."""
    _check_sparse("log_softmax", input)
    return _softmax(input, dim, dtype, log=True)


# The fused operations on lists take dense tensors: these answers send their callers to the composed way.
for _name in ["sgd", "adam", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "rprop", "asgd"]:
    HANDLERS[f"{_name}_step"] = lambda *args, **kwargs: False
HANDLERS.update(scale_=lambda *args: False, norms=lambda *args: (), total_norm=lambda *args: ())
