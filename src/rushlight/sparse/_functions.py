"""Ops on sparse tensors, by the name of the op."""

import rushlight as rl
from rushlight._tensor import CASTS
from rushlight.sparse._coo import SparseTensor, make

HANDLERS = {}


def handles(*names):
    def register(function):
        HANDLERS.update(dict.fromkeys(names, function))
        return function

    return register


def is_sparse(x):
    return isinstance(x, SparseTensor)


def _same(sparse, entries, coalesced=None):
    return make(sparse._places, entries, sparse.shape, sparse._coalesced if coalesced is None else coalesced)


def _at(dense, sparse):
    """The elements of a dense tensor at a sparse one's places, broadcast to its shape first."""
    return dense.expand(tuple(sparse.shape))[tuple(sparse._places)]


@handles("add")
def add(a, b, *, alpha=1):
    if is_sparse(a) and is_sparse(b):
        if a.shape != b.shape:
            raise RuntimeError(
                f"add: expected sizes of 'self' and 'other' to match, but {a.shape} != {b.shape}"
            )
        places = rl.cat([a._places, b._places], 1)
        dtype = rl.promote_types(a.dtype, b.dtype)
        entries = rl.cat([a._entries.to(dtype), (b._entries * alpha).to(dtype)])
        return make(places, entries, a.shape).coalesce()
    if is_sparse(a):
        if not isinstance(b, rl.Tensor):
            raise RuntimeError("add(sparse, number) would not be sparse: call .to_dense() first")
        return a.to_dense() + alpha * b
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


def _become(sparse, result):
    sparse._places, sparse._entries, sparse._coalesced = result._places, result._entries, result._coalesced
    return sparse


@handles("mul", "__rmul_op__")
def mul(a, b):
    if not is_sparse(a):
        a, b = b, a
    if is_sparse(b):
        a, b = a.coalesce(), b.to_dense()
    if isinstance(b, rl.Tensor) and b.dim() > 0:
        a = a.coalesce()
        return _same(a, a._entries * _at(b, a))
    return _same(a, a._entries * b)


@handles("div")
def div(a, b, *, rounding_mode=None):
    if not is_sparse(a) or is_sparse(b):
        raise RuntimeError("div: only a sparse tensor over a number or a dense tensor is sparse")
    if isinstance(b, rl.Tensor) and b.dim() > 0:
        a = a.coalesce()
        b = _at(b, a)
    return _same(a, rl.div(a._entries, b, rounding_mode=rounding_mode))


@handles("mul_")
def mul_(a, b):
    return _become(a, mul(a, b))


@handles("div_")
def div_(a, b, *, rounding_mode=None):
    return _become(a, div(a, b, rounding_mode=rounding_mode))


def _elementwise(name):
    """Ops that leave zero at zero act on the values; the values must be summed up first."""

    def apply(a, *args, **kwargs):
        a = a.coalesce()
        return _same(a, getattr(a._entries, name)(*args, **kwargs))

    return apply


_ZERO_STAYS_ZERO = """
abs asin asinh atan atanh ceil erf expm1 floor frac log1p neg relu round sgn sign sin sinh sqrt square tan
tanh trunc deg2rad rad2deg pow isnan isinf positive
"""
_CASTS = "float double half bfloat16 long int short char byte bool cpu contiguous"

for _name in _ZERO_STAYS_ZERO.split():
    HANDLERS[_name] = _elementwise(_name)


@handles("neg_")
def neg_(a):
    return _become(a, _same(a, -a._entries))


@handles("zero_")
def zero_(a):
    return _become(a, make(a._places[:, :0], a._entries[:0], a.shape, True))


@handles("clone")
def clone(a, *, memory_format=None):
    return make(a._places.clone(), a._entries.clone(), a.shape, a._coalesced)


@handles("detach")
def detach(a):
    return _same(a, a._entries.detach())


@handles("detach_")
def detach_(a):
    a._entries = a._entries.detach()
    return a


@handles("to")
def to(a, *args, **kwargs):
    return _same(a, a._entries.to(*args, **kwargs))


for _name in (*CASTS, "cpu", "contiguous"):
    HANDLERS[_name] = (lambda name: lambda a, *args, **kwargs: _same(a, getattr(a._entries, name)()))(_name)


@handles("transpose")
def transpose(a, dim0, dim1):
    n = a.dim()
    dim0, dim1 = dim0 % n, dim1 % n
    if max(dim0, dim1) >= a.sparse_dim():
        raise RuntimeError("transpose: only sparse dimensions of a sparse tensor can be exchanged")
    order = list(range(a.sparse_dim()))
    order[dim0], order[dim1] = dim1, dim0
    size = list(a.shape)
    size[dim0], size[dim1] = size[dim1], size[dim0]
    return make(a._places[rl.tensor(order)], a._entries, size, a._coalesced and dim0 == dim1)


@handles("t", "_T")
def t(a):
    if a.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.dim()}D")
    return transpose(a, 0, 1) if a.dim() == 2 else a


@handles("sum")
def sum(input, dim=None, keepdim=False, *, dtype=None):
    """The sum of all elements; or over some dimensions, sparse while sparse dimensions are left."""
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
    return rl.linalg.vector_norm(input.coalesce()._entries, p)


@handles("mm", "spmm", "mv", "matmul", "__matmul__")
def mm(a, b, reduce="sum"):
    """The product of two matrices (or a matrix and a vector), dense unless both are sparse.

    reduce says how the terms of an element are taken together: sum, mean, amax or amin.
    """
    if is_sparse(a) and is_sparse(b):
        return mm(a, b.to_dense()).to_sparse()
    if not is_sparse(a):
        if a.dim() == 1:
            return mm(t(b), a)
        return mm(t(b), a.t()).t()
    if a.dim() != 2 or b.dim() not in (1, 2) or a.sparse_dim() != 2:
        raise RuntimeError(f"mm: expected matrices, got sizes {tuple(a.shape)} and {tuple(b.shape)}")
    if a.size(1) != b.size(0):
        raise RuntimeError(
            "mm: mat1 and mat2 shapes cannot be multiplied "
            f"({a.size(0)}x{a.size(1)} and {b.size(0)}x{b.shape[-1]})"
        )
    rows, columns = a._places
    entries = a._entries if b.dim() == 1 else a._entries.unsqueeze(1)
    result = rl.zeros((a.size(0), *b.shape[1:]), dtype=rl.promote_types(a.dtype, b.dtype))
    terms = (entries * b[columns]).to(result.dtype)
    if reduce == "sum":
        return result.index_add(0, rows, terms)
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(f"mm: reduce must be sum, mean, amax or amin, got {reduce!r}")
    return result.index_reduce(0, rows, terms, reduce, include_self=False)


spmm = mm


@handles("addmm")
def addmm(mat, mat1, mat2, *, beta=1, alpha=1):
    """beta * mat + alpha * (mat1 @ mat2)."""
    product = mm(mat1, mat2)
    if is_sparse(mat) and not is_sparse(product):
        mat = mat.to_dense()
    return alpha * product + beta * mat


@handles("cat", "concat", "concatenate")
def cat(tensors, dim=0):
    if not all(is_sparse(x) for x in tensors):
        raise RuntimeError("cat: sparse and dense tensors cannot be put together; call .to_dense() first")
    dim, at, places = dim % tensors[0].dim(), 0, []
    if dim >= tensors[0].sparse_dim():
        raise NotImplementedError("cat of sparse tensors along a dense dimension: call .to_dense() first")
    for x in tensors:
        moved = x._places.clone()
        moved[dim] += at
        places.append(moved)
        at += x.size(dim)
    size = list(tensors[0].shape)
    size[dim] = at
    return make(rl.cat(places, 1), rl.cat([x._entries for x in tensors]), size)


@handles("index_select")
def index_select(a, dim, index):
    return a.to_dense().index_select(dim, index).to_sparse()


@handles("__getitem__")
def getitem(a, index):
    result = a.to_dense()[index]
    return result.to_sparse() if result.dim() else result


@handles("zeros_like")
def zeros_like(a, *, dtype=None, **kwargs):
    return make(a._places[:, :0], a._entries[:0].to(dtype or a.dtype), a.shape, True)


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


def _softmax_with(log):
    def softmax(input, dim, *, dtype=None):
        """Softmax along a dimension among the entries that are there; absent ones count as minus infinity."""
        a = input.coalesce()
        filled = rl.full(tuple(a.shape), float("-inf"), dtype=dtype or a.dtype)
        filled = filled.index_put(tuple(a._places), a._entries.to(dtype or a.dtype))
        result = rl.log_softmax(filled, dim) if log else rl.softmax(filled, dim)
        return _same(a, result[tuple(a._places)])

    return softmax


softmax, log_softmax = _softmax_with(False), _softmax_with(True)


@handles("to_sparse_csr")
def _to_csr(a):
    from rushlight.sparse._csr import to_sparse_csr

    return to_sparse_csr(a)


HANDLERS.update(softmax=softmax, log_softmax=log_softmax, is_coalesced=SparseTensor.is_coalesced)

# The fused operations on lists take dense tensors: these answers send their callers to the composed way.
for _name in ["sgd", "adam", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "rprop", "asgd"]:
    HANDLERS[f"{_name}_step"] = lambda *args, **kwargs: False
HANDLERS.update(scale_=lambda *args: False, norms=lambda *args: (), total_norm=lambda *args: ())
