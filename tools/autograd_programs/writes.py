"""Steps that write to a whole tensor."""

from .registry import dim_of, far, methods, repeats, step, with_other

with_other("write", "mul_ add_ sub_", 3)
with_other("write", "copy_", 3)
with_other("write", "div_ clamp_ xlogy_")
methods("write", "exp_ relu_ sigmoid_ tanh_ sin_ neg_ abs_ square_ reciprocal_ floor_ sign_ erf_")
methods("write", "zero_ detach_ triu_")


@step("write")
def sin_(T, x, y, z, k):
    if not far(x):
        x.sin_()


@step("write")
def xlogy_(T, x, y, z, k):
    # Of short floats PyTorch rounds the logarithm before it multiplies: 3.75 log 3.75 is 4.9375 in bfloat16, and not 4.96875,
    # which is nearest. An exponential makes much of that.
    if x.element_size() > 2 or x.dtype == T.bool:
        x.xlogy_(y)


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
    x.cumsum_(dim_of(x, k)) if k % 2 else x.cumprod_(dim_of(x, k))


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
    if repeats(x):  # PyTorch writes some of them all to the same address
        return
    if k % 4 == 2 and not x.dtype == y.dtype == z.dtype:  # PyTorch's derivative mixes types
        return
    (x.addmm_, x.addmv_, x.addr_, x.baddbmm_)[k % 4](y, z)


@step("write")
def activations(T, x, y, z, k):
    # The derivative at a NaN: PyTorch's vectors say NaN, or 0, and its other loop 1. torch.full((17,), nan) has both in the gradient
    # of elu: sixteen times NaN, and 1.
    if x.numel() >= 8 and bool(x.detach().isnan().any()):
        return
    F = T.nn.functional
    if k % 2:
        (F.relu, F.silu, F.hardswish, F.selu, F.relu6, F.mish)[k % 6](x, inplace=True)
    else:
        (F.leaky_relu, F.elu, F.hardtanh, F.threshold, F.celu)[k % 5](
            x, *((0.25, 0.5) if k % 5 == 3 else ()), inplace=True
        )
