"""Steps with out=."""

from .registry import dim_of, far, repeats, step


@step("out", 3)
def out_pointwise(T, x, y, z, k):
    if k % 7 == 5 and (x.is_complex() or y.is_complex()):  # as in `powers`
        return
    (T.add, T.mul, T.sub, T.div, T.maximum, T.pow, T.eq)[k % 7](x, y, out=z)


@step("out", 2)
def out_unary(T, x, y, z, k):
    if not (x.is_complex() or (k % 6 == 2 and far(x))):
        (T.exp, T.neg, T.sin, T.abs, T.sigmoid, T.sqrt)[k % 6](x, out=z)


@step("out")
def out_join(T, x, y, z, k):
    if z.numel():
        (T.cat, T.stack)[k % 2]([x, y], out=z)


@step("out")
def out_matmul(T, x, y, z, k):
    if repeats(z):  # as in `products`
        return
    (T.matmul, T.mm, T.dot, T.mv)[k % 4](x, y, out=z)


@step("out")
def out_reduce(T, x, y, z, k):
    d = dim_of(x, k)
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
        T.gather(x, dim_of(x, k), T.zeros(x.shape, dtype=T.int64), out=z)
    else:
        T.clamp(x, -1, 1, out=z)
