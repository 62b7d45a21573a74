"""The graph: accumulation, views and in-place writes, hooks, Functions, modes, deep and wide graphs, errors that teach."""

import gc
import weakref

import pytest

import rushlight as rl


def leaf(*values):
    return rl.tensor(values, requires_grad=True)


def test_gradients_accumulate():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [6, 6]


def test_gradients_with_a_graph_have_a_place_for_each_element():
    x = rl.ones(2, 3, requires_grad=True)
    x.mean().backward(create_graph=True)  # its derivative is one number, expanded
    assert x.grad.is_contiguous()
    x[:, 1:].sum().backward()
    assert rl.allclose(x.grad, rl.tensor([0.0, 1.0, 1.0]).expand(2, 3) + 1 / 6)


def test_the_gradient_of_an_expanded_leaf_has_a_place_for_each_element():
    x = rl.ones(1).expand(3).requires_grad_()
    x[:1].sum().backward()
    x[1:].sum().backward()
    assert x.grad.tolist() == [1, 1, 1] and x.grad.is_contiguous()


def test_higher_orders():
    x = leaf(2.0)
    y = x * x * x
    (g,) = rl.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = rl.autograd.grad(g.sum(), x, create_graph=True)
    (ggg,) = rl.autograd.grad(gg.sum(), x)
    assert (g.item(), gg.item(), ggg.item()) == (12, 12, 6)


def test_inplace_on_a_view_rewrites_the_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    v = y[:2]
    v.mul_(rl.tensor([10.0, 20.0]))
    assert type(y.grad_fn).__name__ == "CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [10, 20, 1]


def test_chains_of_views_and_overlapping_writes():
    x = rl.ones(2, 3, requires_grad=True)
    y = x * 2
    y[0][1:].mul_(3)
    y[:, 1].add_(1)
    y.t()[2].mul_(5)
    y.sum().backward()
    assert x.grad.tolist() == [[2, 6, 30], [2, 2, 10]]


def test_saved_tensor_changed_in_place_names_both_lines():
    x = leaf(1.0, 2.0)
    y = x * x
    x.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.sum().backward()
    message = str(caught.value)
    assert "y = x * x" in message and "x.detach().mul_(2)" in message


def test_changes_through_data_are_not_seen():
    x = leaf(1.0, 2.0)
    y = x * x
    x.data.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [4, 8]


def test_second_backward_says_where_it_was_freed():
    y = leaf(1.0).exp()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time") as caught:
        y.backward()
    assert "y.backward()" in str(caught.value) and "leaf(1.0).exp()" in str(caught.value)


def test_refused_writes():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf(1.0).add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        leaf(1.0)[0:1].add_(1)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        rl.ones(1).expand(3).add_(1)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        (leaf(1.0, 2.0) * 1).unbind(0)[0].add_(1)


def test_requires_grad_of_non_leaf():
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf variables"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="floating point"):
        rl.ones(1, dtype=rl.int64).requires_grad_()


def test_backward_without_a_graph():
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        rl.ones(1).sum().backward()
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        (leaf(1.0, 2.0) * 2).backward()


def test_modes():
    x = leaf(1.0)
    with rl.no_grad():
        assert not (x * 2).requires_grad
        with rl.enable_grad():
            assert (x * 2).requires_grad

    @rl.no_grad()
    def plain():
        return x * 2

    @rl.no_grad()
    def several():
        yield x * 2
        yield x * 3

    assert not plain().requires_grad
    for y in several():
        assert not y.requires_grad
        assert rl.is_grad_enabled()
    with rl.inference_mode():
        z = x * 2
    assert z.is_inference()
    with pytest.raises(RuntimeError, match="inference tensor"):
        z.add_(1)


def test_hooks():
    x = leaf(1.0)
    y = x * 2
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.item()))
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 3).backward()
    assert seen == [3]
    assert x.grad.item() == 60
    assert y.grad.item() == 30
    handle.remove()
    after = []
    x.register_post_accumulate_grad_hook(lambda t: after.append(t.grad.item()))
    (x * 1).backward()
    assert after == [61]


class Double(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x * ctx.scale, None


def test_function():
    x = leaf(3.0)
    y = Double.apply(x, 2.0)
    assert type(y.grad_fn).__name__ == "DoubleBackward"
    (g,) = rl.autograd.grad(y, x, create_graph=True)
    (gg,) = rl.autograd.grad(g, x)
    assert (g.item(), gg.item()) == (12, 4)


def test_function_with_setup_context():
    class Cube(rl.autograd.Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return grad * 3 * ctx.saved_tensors[0] ** 2

    x = leaf(2.0)
    Cube.apply(x).backward()
    assert x.grad.item() == 12


def test_wrong_number_of_gradients():
    class Bad(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        Bad.apply(leaf(1.0), leaf(1.0)).backward()


def test_cycles_are_collected():
    class Keeps(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.result = x * 2
            return ctx.result

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = leaf(1.0)
    y = Keeps.apply(x) * 1
    y.register_hook(lambda g, y=y: None)
    alive = weakref.ref(y), weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert alive[0]() is None and alive[1]() is None


def test_a_million_ops_deep():
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    del y
    z = x
    for _ in range(1_000_000):
        z = z * 1.0
    del z  # never run: freed without deep recursion


def test_ten_thousand_wide():
    x = rl.ones((), dtype=rl.float64, requires_grad=True)
    sum(x * i for i in range(10000)).backward()
    assert x.grad.item() == sum(range(10000))


def test_saved_fields_and_edges():
    x, w = leaf(2.0), leaf(5.0)
    y = x * w
    node = y.grad_fn
    assert node.name() == "MulBackward0"
    assert node._saved_other is w
    assert [n.name() for n, _ in node.next_functions] == ["torch::autograd::AccumulateGrad"] * 2
    assert node.next_functions[0][0].variable is x


def test_grad_with_inputs():
    x, w, unused = leaf(2.0), leaf(5.0), leaf(1.0)
    y = (x * w).exp()
    middle = y.log()
    g = rl.autograd.grad(middle, [w, y], retain_graph=True)
    assert g[0].item() == pytest.approx(2)
    assert x.grad is None
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        rl.autograd.grad(middle, [unused], retain_graph=True)
    assert rl.autograd.grad(middle, [unused], allow_unused=True, retain_graph=True) == (None,)
    middle.backward(inputs=[x])
    assert w.grad is None and x.grad is not None


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_names_the_forward_line():
    x = leaf(0.0)
    with rl.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values") as caught:
        bad = x.sqrt() * 0
        bad.backward()
    assert "x.sqrt()" in str(caught.value)


def test_modes_are_where_pytorch_has_them():
    from rushlight.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
    from rushlight.autograd.variable import Variable

    assert (no_grad, enable_grad) == (rl.no_grad, rl.enable_grad)
    assert inference_mode is rl.inference_mode and Variable is rl.autograd.Variable
    assert repr(set_grad_enabled(True)) == "torch.autograd.grad_mode.set_grad_enabled(mode=True)"
    assert no_grad.__module__ == "rushlight.autograd.grad_mode"


def test_what_was_asked_of_determinism_is_remembered():
    assert not rl.are_deterministic_algorithms_enabled() and rl.get_deterministic_debug_mode() == 0
    try:
        rl.use_deterministic_algorithms(True, warn_only=True)
        assert rl.get_deterministic_debug_mode() == 1 and rl.is_deterministic_algorithms_warn_only_enabled()
        rl.set_deterministic_debug_mode("error")
        assert rl.get_deterministic_debug_mode() == 2 and rl.are_deterministic_algorithms_enabled()
    finally:
        rl.use_deterministic_algorithms(False)
    for wrong, error in (("x", RuntimeError), (5, RuntimeError), (None, TypeError), (1.0, TypeError)):
        with pytest.raises(error):
            rl.set_deterministic_debug_mode(wrong)
    with pytest.raises(TypeError):
        rl.use_deterministic_algorithms(1)


def test_a_function_is_not_an_object():
    class Double(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        Double()
    with pytest.raises(NotImplementedError, match="forward function"):
        rl.autograd.Function.apply(rl.ones(1))
