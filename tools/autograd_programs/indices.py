"""Steps that write to a part of a tensor."""

from .registry import dim_of, index_of, step


@step("write", 3)
def setitem(T, x, y, z, k):
    if x.dim() == 0:
        x[...] = y if k % 2 else 2.0
        return
    value = y if k % 2 else (1.5, True, 2)[k % 3]
    x[index(x, k)] = value


def index(x, k):
    """Where `setitem` writes."""
    part, at = slice(k % 2, None, 1 + k // 2 % 2), index_of(x, k)
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
        x[index_of(x, k)] += y
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
    d = dim_of(x, k // 8)
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
