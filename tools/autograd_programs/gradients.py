"""Steps that ask for gradients."""

from .registry import step


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
    # Its strides are nobody's business; a plain clone keeps those of dimensions of size 1.
    return g if g is None else g.clone(memory_format=T.contiguous_format)


@step("grad")
def penalty(T, x, y, z, k):
    (g,) = T.autograd.grad(x.square().sum(), (y,), create_graph=True)
    g.square().sum().backward()


@step("grad")
def take_grad(T, x, y, z, k):
    return x.grad if x.is_leaf else None
