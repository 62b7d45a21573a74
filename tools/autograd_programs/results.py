"""Steps whose result has memory of its own."""

from .registry import dim_of, far, methods, step, with_other

methods("pure", "exp sin sum clone sigmoid mean square prod abs relu tanh float double")
with_other("pure", "mul add sub div maximum dot ge type_as")


@step("pure")
def sin(T, x, y, z, k):
    return None if far(x) else x.sin()


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
    # PyTorch's stack of inference tensors is a view outside of inference mode, along dimension 0 (and not along others).
    if k % 2 and x.is_inference() and y.is_inference() and not T.is_inference_mode_enabled():
        return None
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
    return x.gather(dim_of(x, k), T.zeros(x.shape, dtype=T.int64))


@step("pure")
def reduce(T, x, y, z, k):
    d = dim_of(x, k)
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
