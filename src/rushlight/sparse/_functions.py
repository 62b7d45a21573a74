"""Ops on sparse tensors, by the name of the op."""

import rushlight as rl
from rushlight._tensor import CASTS
from rushlight.sparse import _text
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
    """The elements of a dense tensor at a sparse one's indices, broadcast to its shape first."""
    return dense.expand(tuple(sparse.shape))[tuple(sparse._coords)]


@handles("add")
def add(a, b, *, alpha=1):
    if is_sparse(a) and is_sparse(b):
        layout = a.layout
        a, b = a.to_sparse(), b.to_sparse()
        if a.shape != b.shape and layout is not rl.sparse_coo:
            raise RuntimeError(
                f"torch.add: Expected input tensors to have the same shape, but got {list(a.shape)} and {list(b.shape)}"
            )
        if a.shape != b.shape:
            raise RuntimeError(
                f"add: expected sizes of 'self' and 'other' to match, but {a.shape} != {b.shape}"
            )
        dtype = rl.promote_types(a.dtype, b.dtype)
        if a.sparse_dim() != b.sparse_dim():
            return _add_of_other_density(a, b * alpha, dtype)
        parts = [a._entries.to(dtype), (b._entries * alpha).to(dtype)]
        # As in PyTorch, a sum with an uncoalesced tensor is left uncoalesced: entries in order are merged (unless they
        # are expanded), others stand one behind the other until somebody coalesces them.
        dense = a._entries.is_contiguous() and b._entries.is_contiguous()
        coalesced = a._coalesced and b._coalesced
        if (dense or coalesced) and a._coords.shape == b._coords.shape and rl.equal(a._coords, b._coords):
            return make(a._coords, parts[0] + parts[1], a.shape, coalesced)
        result = make(rl.cat([a._coords, b._coords], 1), rl.cat(parts), a.shape)
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
    return a.index_put(tuple(b._coords), (alpha * b._entries).to(a.dtype), accumulate=True)


def _add_of_other_density(a, b, dtype):
    """A sum where one of the tensors has no entries: as dense as the other is."""
    for none, other in ((b, a), (a, b)):
        if none._nnz() == 0:
            return other.to(dtype).clone()
    raise RuntimeError(
        f"add: expected 'self' and 'other' to have same density, but 'self' has {a.sparse_dim()} sparse dimensions while "
        f"'other' has {b.sparse_dim()} sparse dimensions; x.to_dense().to_sparse(n) makes n of them sparse"
    )


@handles("__radd_op__")
def radd(a, b):
    return add(b, a)


@handles("sub", "subtract")
def sub(a, b, *, alpha=1):
    return add(a, b, alpha=-alpha)


@handles("add_")
def add_(a, b, *, alpha=1):
    if not is_sparse(a):
        return a.index_put_(tuple(b._coords), (alpha * b._entries).to(a.dtype), accumulate=True)
    return written(a, add(a, b, alpha=alpha))


@handles("sub_")
def sub_(a, b, *, alpha=1):
    return add_(a, b, alpha=-alpha)


def written(out, result):
    """The result moved into a tensor that is there, which keeps its type."""
    if not rl.can_cast(result.dtype, out.dtype):
        kinds = (x._entries._type_name()[len("torch.") : -len("Tensor")] for x in (result, out))
        raise RuntimeError("result type {} can't be cast to the desired output type {}".format(*kinds))
    if out.shape != result.shape and out.layout is result.layout is rl.sparse_coo:
        out.sparse_resize_and_clear_(result.shape, result.sparse_dim(), result.dense_dim())
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
    kept = ("_own_grad", "_seen")
    sparse.__dict__.update({name: part for name, part in result.__dict__.items() if name not in kept})
    return sparse


def _ordered(keys):
    """Whether each key is larger than the one before."""
    return keys.numel() < 2 or bool((keys[1:] > keys[:-1]).all())


def _met(a, b):
    """The products of the entries at the indices where both have one."""
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
    result = make(a._coords[:, own], entries, a.shape, True)
    return result if layout is rl.sparse_coo else result.to_sparse(layout=layout)


@handles("mul", "multiply", "__rmul_op__")
def mul(a, b):
    if not is_sparse(a) or (is_sparse(b) and a.dim() == 0):
        a, b = b, a
    if is_sparse(b) and b.dim() == 0:
        b = b.to_dense()
        if a.dim() == 0:  # of two 0-dim tensors neither has the say about the type
            b = b.to(rl.promote_types(a.dtype, b.dtype))
            a = a.to(b.dtype)
    if is_sparse(b):
        if a.shape == b.shape and a.sparse_dim() == b.sparse_dim() > 0:
            return _met(a, b)
        a, b = a._summed(), b.to_dense()
    if isinstance(b, rl.Tensor) and b.dim() > 0:
        a = a._summed()
        if rl.broadcast_shapes(a.shape, b.shape) != a.shape:
            return _spread(a, b)
        return a._with(a._entries * _at(b, a))
    return a._with(a._entries * b)


def _spread(a, b):
    """a * b where the dense b is the larger one: the entries of `a` are repeated first."""
    shape = rl.broadcast_shapes(a.shape, b.shape)
    filled = a._with(rl.ones_like(a._entries, dtype=rl.bool)).to_dense().expand(shape)
    coords = filled.flatten(len(shape) - a.dense_dim()).any(-1) if a.dense_dim() else filled
    coords = coords.nonzero().t()
    entries = a.to_dense().expand(shape)[tuple(coords)] * b.expand(shape)[tuple(coords)]
    return make(coords, entries, shape, True)


@handles("div", "true_divide", "divide")
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


@handles("floor_divide_")
def floor_divide_(a, b):
    return written(a, floor_divide(a, b))


@handles("mul_", "multiply_")
def mul_(a, b):
    if not is_sparse(a):
        return a.copy_(mul(a, b).to_dense())
    return written(a, mul(a, b))


@handles("div_", "true_divide_", "divide_")
def div_(a, b, *, rounding_mode=None):
    return written(a, div(a, b, rounding_mode=rounding_mode))


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


@handles("resize_as_")
def resize_as_(a, the_template, *, memory_format=None):
    if memory_format is not None:
        raise RuntimeError("Unsupported memory format for sparse tensor resize: " + str(memory_format))
    if is_sparse(a):
        return a.resize_as_sparse_(the_template)
    return a.resize_(tuple(the_template.shape))


@handles("resize_")
def resize_(a, *size, memory_format=None):
    if a.layout is rl.sparse_coo:
        raise NotImplementedError(
            "Could not run 'aten::resize_' with arguments from the 'SparseCPU' backend: write sparse_resize_(size, "
            "sparse_dim, dense_dim)"
        )
    from rushlight.sparse import _compressed_resize

    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return _compressed_resize.resize(a, size)


@handles("zeros", "empty")
def zeros(*size, **kwargs):
    """What zeros(..., out=sparse) and empty write: all dimensions sparse, and no entries."""
    size = kwargs.pop("size", size)
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return rl.sparse_coo_tensor(tuple(size), dtype=kwargs.get("dtype"))


@handles("zero_")
def zero_(a):
    return _become(a, zeros_like(a))


@handles("clone")
def clone(a, *, memory_format=None):
    made = a._with(a._entries.clone())
    if type(made) is SparseTensor:
        made._coords = a._coords.clone()
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


def wrapped(dim, count):
    """A dimension counted from the front."""
    if not -count <= dim < count:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})"
        )
    return dim % count


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
    """The sum of the elements of a sparse tensor, of all or over some dimensions.

    Args:
        input (Tensor): sparse.
        dim (int or tuple of ints): the dimensions that are summed over; None means all. Default: None
        keepdim (bool): keeps them with size 1. Default: False
        dtype (dtype): of the result. Default: None

    Returns:
        A sparse tensor while sparse dimensions are left, else a dense one.

    Example:
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
        >>> torch.sparse.sum(x), torch.sparse.sum(x, dim=0).to_dense()
        (tensor(5.), tensor([3., 2.]))
    """
    _check_sparse("sum", input)
    if dim is None or dim == ():
        return input._entries.sum(dtype=dtype)
    given = [wrapped(d, input.dim()) for d in ([dim] if isinstance(dim, int) else dim)]
    dims = set(given)
    if len(dims) < len(given):
        twice = next(d for d in given if given.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    if keepdim:
        return input.to_dense().sum(tuple(dims), keepdim=True, dtype=dtype).to_sparse()
    kept = [d for d in range(input.sparse_dim()) if d not in dims]
    dense = tuple(d - input.sparse_dim() + 1 for d in dims if d >= input.sparse_dim())
    entries = input._entries.sum(dense, dtype=dtype) if dense else input._entries
    if not kept:
        return entries.sum(0, dtype=dtype)
    size = [n for d, n in enumerate(input.shape) if d not in dims]
    return make(input._coords[rl.tensor(kept)], entries, size).coalesce()


@handles("norm", "vector_norm")
def norm(input, p=2, dim=None, keepdim=False, dtype=None, **kwargs):
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True: call .to_dense() first")
    if (
        dim is not None
        and dim != ()
        and sorted({d % input.dim() for d in ([dim] if isinstance(dim, int) else dim)})
        != list(range(input.dim()))
    ):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions "
            "of the input: call .to_dense() first"
        )
    if dtype is not None and p not in (None, 2, "fro"):
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument: convert with .to(dtype)")
    if dtype is not None:
        raise ValueError(
            "dtype argument is not supported in frobenius norm of sparse tensors: convert with .to(dtype)"
        )
    p = 2 if p in (None, "fro") else p
    return rl.linalg.vector_norm(input._summed()._entries, p)


@handles("zeros_like")
def zeros_like(a, *, dtype=None, layout=None, memory_format=None, **kwargs):
    if layout is rl.strided:
        return rl.zeros(a.shape, dtype=dtype or a.dtype)
    if memory_format is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    if layout not in (None, a.layout):
        return make(a._coords[:, :0], a._entries[:0].to(dtype or a.dtype), a.shape, True).to_sparse(
            layout=layout
        )
    return make(a._coords[:, :0], a._entries[:0].to(dtype or a.dtype), a.shape, True)


def _filled_like(name):
    """Compressed tensors keep their indices; of coordinates there may be several at one."""

    def apply(a, *args, **kwargs):
        if a.layout is rl.sparse_coo:
            raise NotImplementedError(
                "a tensor of coordinates filled like another is dense: write torch.ones(x.shape)"
            )
        return a._with(getattr(rl, name)(a._entries, *args, **kwargs))

    return apply


for _name in ("ones_like", "rand_like", "randn_like", "full_like"):
    HANDLERS[_name] = _filled_like(_name)


@handles("empty_like")
def empty_like(a, *, dtype=None, layout=None, memory_format=None, **kwargs):
    if layout is rl.strided:
        return rl.empty(a.shape, dtype=dtype or a.dtype)
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
    a.resize_as_sparse_(b)  # which refuses what would lose entries
    return _become(a, b.to(a.dtype).clone())


def _copy_compressed(a, b):
    """Compressed tensors are copied into others of their layout, shape and number of entries."""
    if a.layout is not b.layout:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self layout is "
            f"{_text.LAYOUTS[a.layout]} and src layout is {_text.LAYOUTS[b.layout]}"
        )
    if a._nnz() != b._nnz():
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported."
        )
    if a.dim() != b.dim():
        raise RuntimeError(
            f"torch.copy_: expected equal numbers of dimensions, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    for d, (own, other) in enumerate(zip(a.shape, b.shape, strict=True)):
        if own != other:
            raise RuntimeError(
                f"torch.copy_: expected shapes of self and src to match along dimension {d} for "
                f"{_text.LAYOUTS[a.layout]} layout but the corresponding dimensions of self and src are {own} and {other}, "
                "respectively."
            )
    if a._entries.shape != b._entries.shape:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different block sizes is not supported. self and src "
            f"values are of {tuple(a._entries.shape)} and {tuple(b._entries.shape)}"
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
    kind = "SparseTensorImpl" if a.layout is rl.sparse_coo else "SparseCsrTensorImpl"
    raise NotImplementedError(f"Cannot access storage of {kind}: a sparse tensor has indices and values")


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
    return a.to_sparse(layout=rl.sparse_csr, dense_dim=dense_dim)


@handles("to_sparse_bsr")
def _to_bsr(a, blocksize, dense_dim=None):
    return a.to_sparse(layout=rl.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@handles("to_sparse_bsc")
def _to_bsc(a, blocksize, dense_dim=None):
    return a.to_sparse(layout=rl.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@handles("to_sparse_csc")
def _to_csc(a, dense_dim=None):
    return a.to_sparse(layout=rl.sparse_csc, dense_dim=dense_dim)


def _softmax(input, dim, dtype, log):
    a = input._summed()
    entries, dim = a._entries if dtype is None else a._entries.to(dtype), wrapped(dim, a.dim())
    if dim >= a.sparse_dim():
        over = dim - a.sparse_dim() + 1
        return a._with(entries.log_softmax(over) if log else entries.softmax(over))
    # Entries that agree in all other indices are of one group.
    groups, of = rl.unique(a._keys(leave_out=dim), return_inverse=True)
    shape = (groups.numel(), *entries.shape[1:])
    most = entries.new_full(shape, float("-inf")).index_reduce(0, of, entries.detach(), "amax")
    shifted = entries - most[of]
    total = entries.new_zeros(shape).index_add(0, of, shifted.exp())
    return a._with(shifted - total.log()[of] if log else shifted.exp() / total[of])


@handles("softmax")
def softmax(input, dim, *, dtype=None):
    """Softmax along a dimension among the entries of a sparse tensor; absent ones count as minus infinity.

    Args:
        input (Tensor): sparse.
        dim (int): the dimension along which the entries sum to 1.
        dtype (dtype): the type that input is cast to first. Default: None

    Example:
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 3.0]]).to_sparse()
        >>> torch.sparse.softmax(x, dim=1).to_dense()
        tensor([[0.0000, 1.0000],
                [0.5000, 0.5000]])
    """
    _check_sparse("softmax", input)
    return _softmax(input, dim, dtype, log=False)


@handles("log_softmax")
def log_softmax(input, dim, *, dtype=None):
    """The logarithm of softmax along a dimension among the entries of a sparse tensor.

    Args:
        input (Tensor): sparse.
        dim (int): the dimension.
        dtype (dtype): the type that input is cast to first. Default: None

    Example:
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 3.0]]).to_sparse()
        >>> torch.sparse.log_softmax(x, dim=1).to_dense()
        tensor([[ 0.0000,  0.0000],
                [-0.6931, -0.6931]])
    """
    _check_sparse("log_softmax", input)
    return _softmax(input, dim, dtype, log=True)


# The fused operations on lists take dense tensors: these answers send their callers to the composed code path.
for _name in ["sgd", "adam", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "rprop", "asgd"]:
    HANDLERS[f"{_name}_step"] = lambda *args, **kwargs: False
HANDLERS.update(scale_=lambda *args: False, norms=lambda *args: (), total_norm=lambda *args: ())


@handles("to_dense")
def to_dense(a, dtype=None, *, masked_grad=None):
    return a.to_dense(dtype, masked_grad=masked_grad)


@handles("to_sparse")
def to_sparse(a, *args, **kwargs):
    return a.to_sparse(*args, **kwargs)


def new(a, *args, device=None):
    """A tensor of coordinates: of indices and values, or by sizes without entries."""
    if device is not None and rl.device(device).type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {rl.device(device).type} was passed"
        )
    if len(args) > 1 and isinstance(args[0], rl.Tensor):
        return rl.sparse_coo_tensor(*args, dtype=a.dtype)
    size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    if isinstance(size, list):
        raise TypeError(
            "SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a "
            "strided tensor and convert it to sparse via to_sparse."
        )
    if not isinstance(size, tuple) or not all(isinstance(n, int) for n in size):
        raise TypeError(
            "new() received an invalid combination of arguments - got "
            f"({', '.join(type(x).__name__ for x in args)}), but expected sizes, or indices and values"
        )
    return rl.sparse_coo_tensor(tuple(size) or (0,), dtype=a.dtype)


@handles("new_zeros", "new_empty")
def new_zeros(a, *size, dtype=None, layout=None, requires_grad=False, **kwargs):
    """A tensor without entries, of this one's layout unless told otherwise."""
    size = kwargs.get("size", size)
    size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return rl.zeros(size, dtype=dtype or a.dtype, layout=layout or a.layout, requires_grad=requires_grad)
