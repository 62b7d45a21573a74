"""What products keep for backward, and so which of their operands may be written to afterwards."""

import itertools

import pytest

import rushlight as rl

SHAPES = ((3,), (3, 3), (1, 3, 3), (2, 3, 3), (2, 1, 3, 3), (1, 1, 3, 3))


def gradient_after_write(T, shapes, outside, transposed, inputs):
    """The gradient of the operand that is part of the graph, written to after it was multiplied by a view that was made
    outside of it; an error's class if the shapes do not fit, or backward is refused.
    """
    leaves = [T.ones(s, dtype=T.float64).requires_grad_() for s in shapes]
    with T.no_grad():
        view = leaves[outside][...]
    part = leaves[1 - outside] * 1.0
    part = part.transpose(0, -1) if transposed and part.dim() > 1 else part
    try:
        y = T.matmul(*((part, view) if outside else (view, part)))
        part.mul_(2)
        y.sum().backward(inputs=[y] if inputs else None)
    except RuntimeError as error:
        return type(error)
    assert leaves[outside].grad is None
    grads = leaves[1 - outside].grad, y.grad if inputs else None
    return [None if g is None else g.tolist() for g in grads]


@pytest.mark.parametrize("inputs", [False, True])
@pytest.mark.parametrize("outside", [0, 1])
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_view_from_outside_the_graph_keeps_the_other_operand_as_torch(outside, inputs):
    torch = pytest.importorskip("torch")
    for *shapes, transposed in itertools.product(SHAPES, SHAPES, (False, True)):
        case = shapes, outside, transposed, inputs
        assert gradient_after_write(rl, *case) == gradient_after_write(torch, *case), case


def test_backward_to_a_product_itself_leaves_its_graph():
    """PyTorch ends a product of batches with a view, which is all that backward(inputs=[product]) runs."""
    x = rl.ones(2, 3, 3, dtype=rl.float64, requires_grad=True)
    y = (x * 1.0) @ rl.ones(2, 3, 3, dtype=rl.float64)
    y.sum().backward(inputs=[y])
    y.sum().backward()
    assert y.grad.tolist() == [[[2.0] * 3] * 3] * 2 and x.grad.tolist() == [[[3.0] * 3] * 3] * 2


def test_a_cast_keeps_the_strides_of_dimensions_of_size_1():
    """They decide whether two tensors count as the same elements, and so which writes are refused."""
    x = rl.arange(3.0, dtype=rl.float64).view(1, 3).unfold(1, 2, 2)
    assert x.to(rl.complex128).stride() == x.float().stride() == x.clone().stride() == x.stride() == (3, 2, 1)
    y = x.float()
    with pytest.raises(RuntimeError, match="single memory location"):
        y[None] = y


def products_of(p, count=1):
    """Products of a rearranged copy of p, of 12 elements, as PyTorch makes them; ours copies p when it is written to."""
    w = rl.arange(1.0, 7.0, dtype=rl.float64).view(3, 2).requires_grad_()
    return w, [p.view(2, 3, 2).transpose(1, 2) @ w for _ in range(count)]


@pytest.mark.parametrize(
    "optimizer", [rl.optim.SGD, rl.optim.Adam, rl.optim.Adafactor, rl.optim.Muon, rl.optim.LBFGS]
)
def test_a_step_of_an_optimizer_copies_what_a_product_keeps(optimizer):
    p = rl.ones(2, 6, dtype=rl.float64, requires_grad=True)
    p.grad = rl.ones_like(p)
    w, (y,) = products_of(p)
    step = optimizer([p], lr=0.5).step
    step((lambda: p.sum()) if optimizer is rl.optim.LBFGS else None)
    assert p.detach().max() < 1
    y.sum().backward()
    assert w.grad.tolist() == [[4.0, 4.0]] * 3


def test_clipping_gradients_copies_what_a_product_keeps():
    p = rl.ones(12, dtype=rl.float64, requires_grad=True)
    p.grad = rl.ones_like(p)
    w, (y,) = products_of(p.grad)
    rl.nn.utils.clip_grad_norm_([p], 0.5)
    assert p.grad.max() < 1
    y.sum().backward()
    assert w.grad.tolist() == [[4.0, 4.0]] * 3


@pytest.mark.parametrize("mode", [rl.no_grad, rl.inference_mode])
def test_copies_made_outside_of_the_graph_are_normal_tensors(mode):
    p = rl.ones(12, dtype=rl.float64)
    w, (y, z) = products_of(p, 2)
    with mode():
        p.mul_(5)
    (g,) = rl.autograd.grad(y.square().sum() + z.sum(), w, create_graph=True)
    assert g.tolist() == [[2 * 4 * 9 + 4, 2 * 4 * 12 + 4]] * 3
    g.sum().backward()
    assert w.grad.tolist() == [[2 * 4 * 3, 2 * 4 * 3]] * 3


def test_many_products_of_one_tensor_and_of_many():
    p = rl.ones(12, dtype=rl.float64, requires_grad=True) * 1
    w, of_one = products_of(p, 200)
    p.mul_(3)
    rl.stack(of_one).sum().backward()
    assert w.grad.tolist() == [[800.0, 800.0]] * 3
    many = [rl.full((12,), float(i), dtype=rl.float64) for i in range(200)]
    kept = [products_of(q) for q in many]
    for q in many[::2]:
        q.zero_()
    for i, (w, (y,)) in enumerate(kept):
        y.sum().backward()
        assert w.grad.tolist() == [[4.0 * i, 4.0 * i]] * 3


@pytest.mark.parametrize("inputs", [False, True])
@pytest.mark.parametrize("detached", [0, 1])
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_operands_may_be_detached_afterwards_as_in_torch(detached, inputs):
    """Where PyTorch multiplies a view of an operand, the view keeps its history."""
    torch = pytest.importorskip("torch")

    def gradients(T, *shapes):
        leaves = [T.full(s, 2.0, dtype=T.float64).requires_grad_() for s in shapes]
        operands = [x * 1.0 for x in leaves]
        try:
            y = T.matmul(*operands)
            operands[detached].detach_()
            (y * y).sum().backward(inputs=[y] if inputs else None, create_graph=True)
            if not inputs:
                (leaves[0].grad.square().sum() + leaves[1].grad.square().sum()).backward()
        except RuntimeError as error:
            return type(error)
        return [None if x.grad is None else x.grad.tolist() for x in leaves]

    for shapes in itertools.product(SHAPES, SHAPES):
        assert gradients(rl, *shapes) == gradients(torch, *shapes), shapes


def test_backward_to_a_result_looks_at_all_that_its_node_keeps():
    x, w = (rl.ones(3, requires_grad=True) * 2 for _ in range(2))
    y = x * w
    w.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.sum().backward(inputs=[y])
