"""Steps that make views."""

from .registry import dim_of, index_of, methods, step, with_other

methods("view", "detach squeeze ravel flatten contiguous t")
with_other("view", "view_as expand_as")


@step("view")
def data(T, x, y, z, k):
    return x.data


@step("view", 3)
def select(T, x, y, z, k):
    d = dim_of(x, k)
    return x.select(d, k % max(x.shape[d] if x.dim() else 1, 1))


@step("view", 3)
def sliced(T, x, y, z, k):
    return x[k % 2 :: 1 + k % 3 % 2] if x.dim() else x[...]


@step("view")
def get(T, x, y, z, k):
    return (x[...], x[None], x[..., None], x[index_of(x, k)] if x.dim() else x[()])[k % 4]


@step("view", 2)
def transpose(T, x, y, z, k):
    return x.transpose(0, dim_of(x, k))


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
    d = dim_of(x, k)
    return x.narrow(d, k % 2, max(x.shape[d] - 1, 0))


@step("view", 2)
def diagonal(T, x, y, z, k):
    return x.diagonal(k % 3 - 1) if x.dim() >= 2 else x[:1]


@step("view")
def unbind(T, x, y, z, k):
    d = dim_of(x, k)
    return x.unbind(d)[k % max(x.shape[d], 1)]


@step("view")
def split(T, x, y, z, k):
    parts = x.split((2, 1, [1, x.shape[0] - 1])[k % 3], 0 if k % 3 == 2 else dim_of(x, k))
    return parts[k % len(parts)]


@step("view")
def chunk(T, x, y, z, k):
    parts = (x.chunk, x.tensor_split)[k % 2](2, dim_of(x, k))
    return parts[k % len(parts)]


@step("view")
def unfold(T, x, y, z, k):
    return x.unfold(dim_of(x, k), 2, 1 + k % 2)


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
    # PyTorch's gradient of a view that begins at an odd offset cannot be seen as complex numbers.
    even = x.dim() and (x._base is None or x._base.storage_offset() % 2 == 0)
    return T.view_as_complex(x) if even else None


@step("view")
def view_dtype(T, x, y, z, k):
    # Of the same size: the bits of a NaN, or of a rounded number, are nobody's business, nor are those of complex numbers.
    return x.view(T.float64) if x.dtype in (T.float64, T.int64) and x.numel() else None
