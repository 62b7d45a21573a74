"""Random programs of views, in-place writes and backward, for tools/fuzz_autograd.py and tests/test_autograd_programs.py.

A program is a list of steps (kind, name, mode, i, j, l, k): `name` is called under the grad mode `mode` with the tensors
i, j and l of those made so far (modulo their number) and the number k, which chooses among its variants. A "view" or a
"pure" step adds its result to the tensors; a "write" changes tensors that are there.
"""

LEAF_SHAPES = ((3,), (2, 3), (3, 3), (2, 2, 3), (), (3,), (2, 3), (1, 3), (0, 3))
LEAF_TYPES = ("float64",) * 12 + ("float32", "float32", "float16", "bfloat16", "int64", "bool", "complex128")
MODES = ("",) * 16 + ("no_grad", "no_grad", "enable_grad", "inference_mode")

# kind -> {name: f(T, x, y, z, k)}
STEPS = {"view": {}, "write": {}, "pure": {}, "grad": {}, "out": {}}


def step(kind, weight=1):
    def add(function):
        STEPS[kind][function.__name__] = (function, weight)
        return function

    return add


def _methods(kind, names, *arguments):
    """Steps that are x.name(*arguments)."""
    for name in names.split():
        STEPS[kind][name] = (lambda T, x, y, z, k, name=name: getattr(x, name)(*arguments), 1)


def _with_other(kind, names, weight=1):
    """Steps that are x.name(y)."""
    for name in names.split():
        STEPS[kind][name] = (lambda T, x, y, z, k, name=name: getattr(x, name)(y), weight)


def _dim(x, k):
    return k % max(x.dim(), 1)


def _index(x, k):
    """A place along the first dimension."""
    return k % max(x.shape[0], 1) if x.dim() else 0


def _repeats(x):
    """Whether elements share a place; the stride of a dimension of size 1 is nobody's business."""
    return x.numel() > 0 and any(n > 1 and s == 0 for n, s in zip(x.shape, x.stride()))


# Views.

_methods("view", "detach squeeze ravel flatten contiguous t")
_with_other("view", "view_as expand_as")


@step("view")
def data(T, x, y, z, k):
    return x.data


@step("view", 3)
def select(T, x, y, z, k):
    d = _dim(x, k)
    return x.select(d, k % max(x.shape[d] if x.dim() else 1, 1))


@step("view", 3)
def sliced(T, x, y, z, k):
    return x[k % 2 :: 1 + k % 3 % 2] if x.dim() else x[...]


@step("view")
def get(T, x, y, z, k):
    return (x[...], x[None], x[..., None], x[_index(x, k)] if x.dim() else x[()])[k % 4]


@step("view", 2)
def transpose(T, x, y, z, k):
    return x.transpose(0, _dim(x, k))


@step("view")
def permute(T, x, y, z, k):
    return x.permute(*reversed(range(x.dim())))


@step("view")
def movedim(T, x, y, z, k):
    return x.movedim(0, -1)


@step("view", 3)
def view(T, x, y, z, k):
    return x.view(-1) if k % 3 else x.view(x.shape)


@step("view")
def reshape(T, x, y, z, k):
    return x.reshape(-1, 1) if k % 2 else x.reshape(-1)


@step("view")
def unflatten(T, x, y, z, k):
    n = 1 + k % 3
    return (
        x.unflatten(-1, (-1, n)) if x.dim() and x.shape[-1] % n == 0 else None
    )  # PyTorch takes 10 ms for the error


@step("view", 2)
def expand(T, x, y, z, k):
    return x.unsqueeze(0).expand(2, *x.shape) if k % 3 else x.expand(*x.shape)


@step("view")
def broadcast_to(T, x, y, z, k):
    return T.broadcast_to(x, (2, 3))


@step("view", 2)
def unsqueeze(T, x, y, z, k):
    return x.unsqueeze(k % (x.dim() + 1))


@step("view", 2)
def narrow(T, x, y, z, k):
    d = _dim(x, k)
    return x.narrow(d, k % 2, max(x.shape[d] - 1, 0))


@step("view", 2)
def diagonal(T, x, y, z, k):
    return x.diagonal(k % 3 - 1) if x.dim() >= 2 else x[:1]


@step("view")
def unbind(T, x, y, z, k):
    d = _dim(x, k)
    return x.unbind(d)[k % max(x.shape[d], 1)]


@step("view")
def split(T, x, y, z, k):
    parts = x.split((2, 1, [1, x.shape[0] - 1])[k % 3], 0 if k % 3 == 2 else _dim(x, k))
    return parts[k % len(parts)]


@step("view")
def chunk(T, x, y, z, k):
    parts = (x.chunk, x.tensor_split)[k % 2](2, _dim(x, k))
    return parts[k % len(parts)]


@step("view")
def unfold(T, x, y, z, k):
    return x.unfold(_dim(x, k), 2, 1 + k % 2)


@step("view", 2)
def as_strided(T, x, y, z, k):
    if x.dim() and k % 4 == 0:
        return x.as_strided(x.shape, x.stride())
    return x.as_strided(*(((2,), (1,)), ((2, 2), (1, 1)), ((2, 2), (2, 1), 1), ((3,), (0,)), ((), ()))[k % 5])


@step("view")
def real(T, x, y, z, k):
    return x.real if k % 2 else x.imag


@step("view")
def complex_view(T, x, y, z, k):
    if not x.numel():  # PyTorch's backward refuses its own gradient, expanded to no elements
        return None
    if x.is_complex():
        return T.view_as_real(x)
    # PyTorch's gradient of a view that begins at an odd place cannot be seen as complex numbers.
    even = x.dim() and (x._base is None or x._base.storage_offset() % 2 == 0)
    return T.view_as_complex(x) if even else None


@step("view")
def view_dtype(T, x, y, z, k):
    # Of the same size: the bits of a NaN, or of a rounded number, are nobody's business, nor are those of complex numbers.
    return x.view(T.float64) if x.dtype in (T.float64, T.int64) and x.numel() else None


# Writes.

_with_other("write", "mul_ add_ sub_", 3)
_with_other("write", "copy_", 3)
_with_other("write", "div_ clamp_ xlogy_")
_methods("write", "exp_ relu_ sigmoid_ tanh_ sin_ neg_ abs_ square_ reciprocal_ floor_ sign_ erf_")
_methods("write", "zero_ detach_ triu_")


def _residue(x):
    """Whether there are numbers in x that rounding may have left of a zero: their sign is anything."""
    bits = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-6, "complex64": 1e-6}
    limit = bits.get(str(x.dtype).split(".")[1], 1e-2)
    return bool(((x != 0) & (x.detach().abs() < limit)).any())


def _near_whole(x, y):
    """Whether rounding decides about a whole number of times that y fits in x."""
    if not (x.is_floating_point() and y.is_floating_point()):
        return False
    x, y = x.detach(), y.detach()
    times = (x / y).round()
    return bool((((x / y - times).abs() < 1e-5) & (times * y != x)).any())


def by_a_bit(name, x, y):
    """Whether the last bit of x decides about the result of a step by more than a bit."""
    if name == "remainder_":
        return _near_whole(x, y)
    return name in ("sign_", "powers", "pow_number", "out_pointwise") and _residue(x)


def _far(x):
    """Whether there are numbers in x whose last bit turns an angle."""
    return bool((x.detach().abs() > 1e4).any())


@step("write")
def sin_(T, x, y, z, k):
    if not _far(x):
        x.sin_()


@step("write")
def remainder_(T, x, y, z, k):
    # Where a quotient is infinite, PyTorch's vectors say NaN and its other loop a remainder.
    tiny = y.is_floating_point() and bool(((y != 0) & (y.abs() < 1e-300)).any())
    if not tiny:
        x.remainder_(y)


@step("write")
def floor_(T, x, y, z, k):
    # What is a whole number but for its last bit: PyTorch's vectors and its other loop may leave 2 ** 0.5 on either side.
    if x.is_floating_point():
        x.data.add_(1e-9)
    x.floor_()


@step("write", 2)
def fill_(T, x, y, z, k):
    x.fill_(0.5 if k % 3 else y)


@step("write", 3)
def with_number(T, x, y, z, k):
    (x.add_, x.mul_, x.sub_, x.div_, x.pow_ if x.is_floating_point() else x.neg_)[k % 5](
        (1.5, 2, True, 0.5j if k % 7 == 0 else -1)[k % 4]
    )


@step("write", 2)
def operators(T, x, y, z, k):
    if k % 4 == 0:
        x += y
    elif k % 4 == 1:
        x *= y
    elif k % 4 == 2:
        x -= 0.5
    else:
        x **= 2


@step("write")
def alpha(T, x, y, z, k):
    (x.add_, x.sub_)[k % 2](y, alpha=2 if k % 3 else 0.5)


@step("write")
def addcmul_(T, x, y, z, k):
    if k % 2 == 0 and not (z.is_floating_point() or z.is_complex()):  # of integers PyTorch's derivative fails
        return
    (x.addcmul_ if k % 2 else x.addcdiv_)(y, z, value=0.5)


@step("write")
def lerp_(T, x, y, z, k):
    x.lerp_(y, z if k % 2 else 0.25)


@step("write")
def clamp_numbers(T, x, y, z, k):
    x.clamp_(-0.5, 0.5) if k % 2 else x.clamp_min_(0)


@step("write")
def cumulate(T, x, y, z, k):
    x.cumsum_(_dim(x, k)) if k % 2 else x.cumprod_(_dim(x, k))


@step("write")
def logical(T, x, y, z, k):
    # PyTorch does not record the logical ones, the gradient passing as if nothing had happened; of eq_ it keeps both operands, of
    # which only the shape is needed, and refuses writes to them.
    x = x.detach()
    (x.logical_and_, x.bitwise_or_, x.logical_xor_, x.eq_)[k % 4](y.detach()) if k % 5 else x.logical_not_()


@step("write")
def powers(T, x, y, z, k):
    if x.is_complex() or y.is_complex():  # on a branch cut the sign of a zero decides
        return
    if k % 4:
        x.pow_(y)
        return
    if x.is_floating_point():  # what is left of a sum that is 0 may lie on either side of it
        x.data.masked_fill_(x.detach().abs() < 1e-9, 0)
    x.sqrt_()


@step("write")
def products(T, x, y, z, k):
    if _repeats(x):  # PyTorch writes some of them all to the same place
        return
    if k % 4 == 2 and not x.dtype == y.dtype == z.dtype:  # PyTorch's derivative mixes types
        return
    (x.addmm_, x.addmv_, x.addr_, x.baddbmm_)[k % 4](y, z)


@step("write")
def activations(T, x, y, z, k):
    F = T.nn.functional
    if k % 2:
        (F.relu, F.silu, F.hardswish, F.selu, F.relu6, F.mish)[k % 6](x, inplace=True)
    else:
        (F.leaky_relu, F.elu, F.hardtanh, F.threshold, F.celu)[k % 5](
            x, *((0.25, 0.5) if k % 5 == 3 else ()), inplace=True
        )


@step("write", 3)
def setitem(T, x, y, z, k):
    if x.dim() == 0:
        x[...] = y if k % 2 else 2.0
        return
    value = y if k % 2 else (1.5, True, 2)[k % 3]
    x[place(x, k)] = value


def place(x, k):
    """Where `setitem` writes."""
    part, at = slice(k % 2, None, 1 + k // 2 % 2), _index(x, k)
    return (at, part, ..., (..., at), (part, part), None)[k // 2 % 6]


@step("write", 2)
def set_by_index(T, x, y, z, k):
    value = y if k % 2 else 0.75
    if x.dim() == 0 or x.shape[0] < 2:  # PyTorch writes what comes before an index that is out of range
        return
    if k % 5 == 0:
        x[x > 0] = value
    elif k % 5 == 1:
        x[T.tensor([0, 1])] = value
    elif k % 5 == 2:
        x[[0, 0]] = value
    elif k % 5 == 3:
        x[T.tensor(0), ..., 0] = value
    else:
        x[z] = value


@step("write")
def augmented_item(T, x, y, z, k):
    if k % 2:
        x[_index(x, k)] += y
    else:
        x[..., :1] *= 2


@step("write", 2)
def masked_fill_(T, x, y, z, k):
    x.masked_fill_(x > 0 if k % 3 else y, z if k % 2 and x.is_floating_point() else 0.25)


@step("write")
def masked_scatter_(T, x, y, z, k):
    if y.numel() >= x.numel():  # PyTorch writes what there is, and refuses then
        x.masked_scatter_(x > 0, y)


@step("write", 2)
def index_put_(T, x, y, z, k):
    if x.dim() and not x.shape[0]:
        return
    x.index_put_((T.tensor([0, 0]),), y if k % 3 else T.tensor(0.5, dtype=x.dtype), accumulate=k % 2 == 0)


@step("write", 2)
def index_writes(T, x, y, z, k):
    d = _dim(x, k // 8)
    if x.dim() == 0 or x.shape[d] < 2:  # PyTorch writes what comes before an index that is out of range
        return
    index = T.tensor([0, 1] if k % 2 else [0, 0])
    if k % 8 < 2:
        x.index_add_(d, index, y, alpha=2 if k % 16 < 8 else 1)
    elif k % 8 < 4:
        x.index_copy_(d, index, y)
    elif k % 8 < 6:
        x.index_fill_(d, index, 0.5 if k % 16 < 8 else y)
    elif k % 8 < 7:
        x.scatter_add_(d, T.zeros(y.shape, dtype=T.int64), y)
    else:
        x.scatter_(d, T.zeros(y.shape, dtype=T.int64), y if k % 16 < 8 else 0.5)


@step("write")
def fill_diagonal_(T, x, y, z, k):
    x.fill_diagonal_(0.5)


@step("write")
def take_put(T, x, y, z, k):
    if x.numel():
        x.put_(T.tensor([0, 0]), y, accumulate=k % 2 == 0)


@step("write", 2)
def set_(T, x, y, z, k):
    if not (x.requires_grad and not T.is_grad_enabled()):  # no other shape behind the graph's back
        x.set_(y)


@step("write", 3)
def geometry(T, x, y, z, k):
    if x.requires_grad and not T.is_grad_enabled():
        return
    if k % 5 == 4:
        x.t_() if k % 3 else x.squeeze_()
    elif k % 4 == 0:
        x.unsqueeze_(k % (x.dim() + 1))
    elif k % 4 == 1:
        x.transpose_(0, -1)
    elif k % 4 == 2:
        x.as_strided_((2,), (1,))
    else:
        # New elements have no value.
        if x.numel() >= 2 and (x.storage_offset() + 2) * x.element_size() <= x.untyped_storage().nbytes():
            x.resize_(2)


@step("write")
def set_data(T, x, y, z, k):
    # Not another shape for a leaf that a graph leads to, nor a tensor that counts no versions.
    if not (x.is_inference() or y.is_inference()) and (
        (x.shape == y.shape and x.dtype == y.dtype) or not x.requires_grad
    ):
        x.data = y if k % 2 else y.detach()


@step("write", 2)
def through_data(T, x, y, z, k):
    (x.data if k % 2 else x.detach()).mul_(2)


@step("write", 2)
def requires_grad_(T, x, y, z, k):
    if x.is_inference():
        return
    if k % 3 == 2:
        x.requires_grad = k % 2 == 0
    else:
        x.requires_grad_(k % 3 == 0)


@step("write")
def retain_grad(T, x, y, z, k):
    x.retain_grad()


@step("write", 2)
def register_hook(T, x, y, z, k):
    hook = (
        lambda g: g * 2,
        lambda g: None,
        lambda g: g.neg(),
        lambda g: g.detach().clone().mul_(3),
        lambda g: g.sum(),
    )[k % 5]
    if k % 7 == 0:
        x.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2) if k % 3 == 0 else None)
    else:
        x.register_hook(hook)


@step("write")
def set_grad(T, x, y, z, k):
    if k % 4 == 0:
        x.grad = None
    elif k % 4 == 1:
        x.grad = y
    elif x.is_leaf and x.grad is not None:
        (x.grad.zero_ if k % 4 == 2 else x.grad.detach_)()


# Results with memory of their own.

_methods("pure", "exp sin sum clone sigmoid mean square prod abs relu tanh float double")
_with_other("pure", "mul add sub div maximum dot ge type_as")


@step("pure")
def sin(T, x, y, z, k):
    return None if _far(x) else x.sin()


@step("pure")
def prod(T, x, y, z, k):
    # Of short floats PyTorch rounds each partial product, and may end a bit or two away from the product.
    return x.prod(dtype=T.float32) if x.dtype in (T.float16, T.bfloat16) else x.prod()


@step("pure")
def to_int(T, x, y, z, k):
    # Away from 0: what is a whole number but for its last bit is cut to that number.
    return (x + 1e-9 * x.sign()).int() if x.is_floating_point() else x.int()


@step("pure")
def cat(T, x, y, z, k):
    return (T.cat, T.stack)[k % 2]([x, y, x] if k % 3 else [x, y])


@step("pure")
def matmul(T, x, y, z, k):
    return x @ y if x.numel() and y.numel() else None


@step("pure")
def where(T, x, y, z, k):
    return T.where(x > y, x, z)


@step("pure")
def pow_number(T, x, y, z, k):
    if x.is_complex():
        return None
    return (x.pow((3, 0.5, 2)[k % 3]), 2**x, x.pow(y) if not y.is_complex() else None)[k % 3]


@step("pure")
def number(T, x, y, z, k):
    return (x * 1.0, x + 2, 1 - x, 3 / x, x * 1j)[k % 5]


@step("pure", 2)
def index(T, x, y, z, k):
    if x.dim() == 0:
        return x * 2
    return (
        lambda: x[T.tensor([0, 0])],
        lambda: x[x > 0],
        lambda: x[y],
        lambda: x.index_select(0, T.tensor([0])),
    )[k % 4]()


@step("pure")
def gather(T, x, y, z, k):
    return x.gather(_dim(x, k), T.zeros(x.shape, dtype=T.int64))


@step("pure")
def reduce(T, x, y, z, k):
    d = _dim(x, k)
    if x.is_complex() or not x.numel():
        return x.sum(d)
    if k % 10 == 8 and x.element_size() == 2:  # PyTorch rounds in between; near 0 little is left
        return x.sum(d)
    return (
        lambda: x.sum(d),
        lambda: x.amax(d),
        lambda: x.cumsum(d),
        lambda: x.softmax(d),
        lambda: x.max(d)[0],
        lambda: x.sort(d)[0],
        lambda: x.norm(),
        # One element has no variance, and no gradient of it: PyTorch makes an infinity of a NaN.
        lambda: x.var() if x.numel() > 1 else x.sum(),
        # Of short floats PyTorch rounds the exponentials and their sum.
        lambda: (x.float() if x.dtype in (T.float16, T.bfloat16) else x).logsumexp(d),
        lambda: x.cumprod(d),
    )[k % 10]()


@step("pure")
def cast(T, x, y, z, k):
    return x.to((T.float32, T.float64, T.complex128, y.dtype)[k % 4])


@step("pure")
def products_of(T, x, y, z, k):
    if T.bool in (x.dtype, y.dtype, z.dtype):  # PyTorch's derivatives compute with bools
        return None
    if k % 4 == 3 and not (z.is_floating_point() or z.is_complex()):  # of integers PyTorch's derivative fails
        return None
    return (T.addmm, T.addcmul, T.lerp, T.addcdiv)[k % 4](x, y, z)


@step("pure")
def zeros_like(T, x, y, z, k):
    if T.is_inference_mode_enabled():
        return T.zeros_like(x)
    return T.zeros_like(x, requires_grad=k % 2 == 0) if k % 3 else T.ones(x.shape, dtype=x.dtype)


# out=


@step("out", 3)
def out_pointwise(T, x, y, z, k):
    if k % 7 == 5 and (x.is_complex() or y.is_complex()):  # as in `powers`
        return
    (T.add, T.mul, T.sub, T.div, T.maximum, T.pow, T.eq)[k % 7](x, y, out=z)


@step("out", 2)
def out_unary(T, x, y, z, k):
    if not (x.is_complex() or (k % 6 == 2 and _far(x))):
        (T.exp, T.neg, T.sin, T.abs, T.sigmoid, T.sqrt)[k % 6](x, out=z)


@step("out")
def out_join(T, x, y, z, k):
    if z.numel():
        (T.cat, T.stack)[k % 2]([x, y], out=z)


@step("out")
def out_product(T, x, y, z, k):
    if _repeats(z):  # as in `products`
        return
    (T.matmul, T.mm, T.dot, T.mv)[k % 4](x, y, out=z)


@step("out")
def out_reduce(T, x, y, z, k):
    d = _dim(x, k)
    if k % 5 == 0:
        T.sum(x, d, out=z)
    elif k % 5 == 1:
        T.cumsum(x, d, out=z)
    elif k % 5 == 2:
        T.argmax(x, d, out=z)
    elif k % 5 == 3:
        T.max(x, d, out=(y, z))
    else:
        T.sort(x, d, out=(y, z))


@step("out")
def out_choose(T, x, y, z, k):
    if k % 4 == 0:
        T.where(x > 0, x, y, out=z)
    elif k % 4 == 1:
        T.index_select(x, 0, T.tensor([0]), out=z)
    elif k % 4 == 2:
        T.gather(x, _dim(x, k), T.zeros(x.shape, dtype=T.int64), out=z)
    else:
        T.clamp(x, -1, 1, out=z)


# Gradients.


@step("grad", 4)
def backward(T, x, y, z, k):
    x.sum().backward(retain_graph=k % 3 == 0)


@step("grad")
def backward_given(T, x, y, z, k):
    # A copy: PyTorch may keep a view of what it is given as .grad, and the next backward then writes to y.
    x.backward(y.clone() if k % 2 else None, create_graph=k % 3 == 0)


@step("grad")
def backward_inputs(T, x, y, z, k):
    x.sum().backward(inputs=[y, z] if k % 2 else [y], retain_graph=k % 3 == 0)


@step("grad", 2)
def grad(T, x, y, z, k):
    create = k % 3 != 0
    (g,) = T.autograd.grad(x.sum() if k % 5 else x, (y,), create_graph=create, allow_unused=k % 2 == 0)
    return g if g is None else g.clone()  # its strides are nobody's business


@step("grad")
def penalty(T, x, y, z, k):
    (g,) = T.autograd.grad(x.square().sum(), (y,), create_graph=True)
    g.square().sum().backward()


@step("grad")
def take_grad(T, x, y, z, k):
    return x.grad if x.is_leaf else None


WHEELS = {
    kind: [name for name, (_, weight) in steps.items() for _ in range(weight)]
    for kind, steps in STEPS.items()
}
KINDS = ("view",) * 9 + ("write",) * 11 + ("pure",) * 6 + ("grad",) * 3 + ("out",)


def generate(rng):
    """A program: leaves (shape, type, requires_grad, seed of its values, whether it is multiplied by 1), then steps."""
    number = lambda n: int(rng.random() * n)  # noqa: E731 - a quarter of the price of randrange
    pick = lambda of: of[int(rng.random() * len(of))]  # noqa: E731
    leaves = [
        (pick(LEAF_SHAPES), pick(LEAF_TYPES), rng.random() < 0.7, number(1 << 30), rng.random() < 0.5)
        for _ in range(1 + number(3))
    ]
    steps = []
    for _ in range(2 + number(9)):
        kind = pick(KINDS)
        # Half of the time the latest tensors: programs that build on what they did.
        i, j, l = (-1 - number(3) if rng.random() < 0.5 else number(1 << 16) for _ in range(3))  # noqa: E741
        mode = pick(MODES)
        if kind == "grad" and mode == "inference_mode":
            mode = ""  # nothing can be added to the gradients that are made there
        steps.append((kind, pick(WHEELS[kind]), mode, i, j, l, number(1 << 16)))
    steps.append(("grad", "backward", "", -1, 0, 0, 1))
    return leaves, steps
