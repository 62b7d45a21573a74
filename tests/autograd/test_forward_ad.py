"""Forward mode, function modes, and the helpers of autograd.graph."""

import pytest
from opspec import parts
from specs import ALL

import rushlight as rl
from rushlight.autograd import forward_ad as fwAD
from rushlight.autograd import graph
from rushlight.overrides import BaseTorchFunctionMode, TorchFunctionMode


def randn(*size):
    return rl.randn(*size, dtype=rl.float64)


def test_duals():
    x, t = randn(3), randn(3)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, t)
        primal, tangent = fwAD.unpack_dual(dual)
        assert rl.equal(primal, x) and rl.equal(tangent, t)
        y = (dual.sin() * 2).sum()
        primal, tangent = fwAD.unpack_dual(y)
        assert not primal.requires_grad and not tangent.requires_grad
        assert rl.allclose(tangent, (x.cos() * 2 * t).sum())
        assert fwAD.unpack_dual(x).tangent is None
        both = fwAD.make_dual(x, t) * fwAD.make_dual(x * 2, t * 3)
        assert rl.allclose(fwAD.unpack_dual(both).tangent, t * x * 2 + x * t * 3)
    assert fwAD.unpack_dual(x).tangent is None


def test_duals_and_reverse_mode_together():
    x, t = randn(3).requires_grad_(), randn(3)
    with fwAD.dual_level():
        tangent = fwAD.unpack_dual((fwAD.make_dual(x, t) ** 3).sum()).tangent
        (g,) = rl.autograd.grad(tangent, x)
    assert rl.allclose(g, 6 * x * t)  # a Hessian-vector product


def test_duals_that_make_no_sense():
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(randn(2), randn(2))
    with fwAD.dual_level():
        with pytest.raises(RuntimeError, match="different size"):
            fwAD.make_dual(randn(2), randn(3))
        with pytest.raises(ValueError, match="floating point"):
            fwAD.make_dual(rl.tensor([1]), rl.tensor([1]))
        with pytest.raises(RuntimeError, match="Nested"):
            fwAD.enter_dual_level()
    with pytest.raises(RuntimeError, match="no level is active"):
        fwAD.exit_dual_level()


@pytest.mark.parametrize("spec", [s for s in ALL if s.grad and s.gradgrad][::4], ids=str)
def test_forward_mode_of_ops(spec):
    for sample in list(spec.samples())[:1]:
        inputs, call = parts(sample)
        function = call(spec.derive or spec.function)
        outputs = function(*inputs) if inputs else ()
        if outputs and any(y.requires_grad for y in outputs) and sum(x.numel() for x in inputs) < 100:
            assert rl.autograd.gradcheck(function, inputs, check_forward_ad=True, check_backward_ad=False)


def test_gradcheck_of_wrong_derivatives():
    class Wrong(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = randn(4).requires_grad_()
    for options in ({}, {"fast_mode": True}, {"check_forward_ad": True, "check_backward_ad": False}):
        with pytest.raises(rl.autograd.GradcheckError, match="mismatch"):
            rl.autograd.gradcheck(Wrong.apply, x, **options)
        assert rl.autograd.gradcheck(lambda v: v * 2, x, **options)
    assert rl.autograd.gradcheck(lambda v: v.sin(), x, check_batched_grad=True)


def test_modes_see_every_function():
    seen = []

    class Log(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = rl.ones(2, 2)
    with Log():
        y = (x + 1).exp() @ x
        y[0]
        rl.zeros(2)
        rl.linalg.norm(y)
        _ = x > 0
        _ = -x
    assert (
        seen[:7] == ["add", "exp", "matmul", "__getitem__", "zeros", "linalg_norm", "gt"]
        and seen[-1] == "neg"
    )
    seen.clear()
    x + 1
    assert not seen


def test_modes_nest_and_replace():
    class Twice(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is rl.sin else result

    x = rl.ones(1)
    with Twice():
        assert rl.allclose(rl.sin(x), x.sin() * 2)
        with BaseTorchFunctionMode(), Twice():
            assert rl.allclose(rl.sin(x), rl.tensor([4 * 0.8414709848]))
    with pytest.raises(KeyError), Twice():
        raise KeyError
    assert rl.allclose(rl.sin(x), rl.tensor([0.8414709848]))


def test_multi_grad_hooks():
    x, y, z = (randn(2).requires_grad_() for _ in range(3))
    seen, first = [], []
    all_of = graph.register_multi_grad_hook(
        (x, y, z), lambda grads: seen.append([g is not None for g in grads])
    )
    any_of = graph.register_multi_grad_hook((x, y), lambda g: first.append(tuple(g.shape)), mode="any")
    (x * y * z).sum().backward()
    assert seen == [[True] * 3] and first == [(2,)]
    (x * z).sum().backward()
    assert seen[1:] == [[True, False, True]] and len(first) == 2
    (x * y).sum().backward(inputs=[x])
    all_of.remove()
    any_of.remove()
    count = len(seen), len(first)
    (x * y * z).sum().backward()
    assert (len(seen), len(first)) == count
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((x,), print, mode="some")


def test_saved_tensor_hooks_can_be_forbidden():
    with graph.disable_saved_tensors_hooks("not here"):
        with (
            pytest.raises(RuntimeError, match="not here"),
            graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        ):
            pass
        with graph.disable_saved_tensors_hooks("nor here"):
            pass
        with pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
            pass
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def test_gradient_edges_stand_for_tensors():
    x = randn(3).requires_grad_()
    y = x.exp()
    z = (y * y).sum()
    edge = graph.get_gradient_edge(y)
    expected = 2 * y.detach()
    (g,) = rl.autograd.grad(z, edge, retain_graph=True)
    assert rl.allclose(g, expected)
    root = graph.get_gradient_edge(z)
    del z, y
    (g,) = rl.autograd.grad(root, x, retain_graph=True)
    assert rl.allclose(g, expected * x.detach().exp())
    leaf = graph.get_gradient_edge(x)
    a, b = rl.autograd.grad([root], [leaf, edge], retain_graph=True)
    assert rl.allclose(a, g) and rl.allclose(b, expected)
    rl.autograd.backward(root, inputs=[leaf])
    assert rl.allclose(x.grad, g)


def test_increment_version():
    x = randn(2).requires_grad_()
    w = randn(2)
    y = (x * w).sum()
    graph.increment_version(w)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


class Doubled(rl.autograd.Function):
    """x * 2, with a jvp that multiplies by another number."""

    @staticmethod
    def forward(ctx, x, y, factor):
        ctx.factor = factor
        return x * 2 + y

    @staticmethod
    def jvp(ctx, x_t, y_t, _):
        return x_t * ctx.factor + y_t


def test_jvp_of_a_function():
    from rushlight.autograd import forward_ad as fw

    with fw.dual_level():
        x = fw.make_dual(rl.tensor([1.0, 2.0]), rl.tensor([1.0, 10.0]))
        y = Doubled.apply(x, rl.ones(2), 5.0) * 3  # y does not move: its tangent is zeros
        primal, tangent = fw.unpack_dual(y)
        assert primal.tolist() == [9, 15] and tangent.tolist() == [15, 150]
        assert "tangent=" in str(y) and "tangent=" not in str(primal)


def test_a_tangent_has_no_tangent():
    from rushlight.autograd import forward_ad as fw

    with fw.dual_level():
        dual = fw.make_dual(rl.ones(2), rl.ones(2))
        with pytest.raises(RuntimeError, match="has a forward gradient at the same level"):
            fw.make_dual(rl.ones(2), dual)
        dual *= 2
        assert fw.unpack_dual(dual).tangent.tolist() == [2, 2]


def test_a_function_without_any_derivative():
    from rushlight.autograd import forward_ad as fw

    class Nothing(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    with fw.dual_level(), pytest.raises(RuntimeError, match="must implement the jvp function"):
        Nothing.apply(fw.make_dual(rl.ones(2), rl.ones(2)))


def test_tensors_saved_for_forward():
    from rushlight.autograd import forward_ad as fw

    class Product(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def jvp(ctx, x_t, y_t):
            x, y = ctx.saved_tensors
            return x_t * y + x * y_t

    with fw.dual_level():
        x = fw.make_dual(rl.tensor([2.0]), rl.tensor([1.0]))
        assert fw.unpack_dual(Product.apply(x, rl.tensor([5.0]))).tangent.tolist() == [5]


def test_jvp_finds_what_was_saved_for_forward_alone():
    class Double(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, forward):
            ctx.save_for_backward(x)
            if forward:
                ctx.save_for_forward(x, x)
            return x * 2

        @staticmethod
        def jvp(ctx, t, _):
            found.append(len(ctx.saved_tensors))
            return t * 2

        @staticmethod
        def vjp(ctx, g):
            found.append(len(ctx.saved_tensors))
            return g * 2, None

    found = []
    x = randn(3).requires_grad_()
    with fwAD.dual_level():
        for forward in (False, True):
            Double.apply(fwAD.make_dual(x, rl.ones_like(x)), forward).sum().backward()
    assert found == [0, 1, 2, 1]


def test_out_names_itself_in_its_refusal():
    with fwAD.dual_level():
        x = fwAD.make_dual(randn(2), randn(2))
        with pytest.raises(RuntimeError, match="out= function"):
            rl.add(x, x, out=randn(2))


def test_a_dual_has_one_tangent_a_level():
    with fwAD.dual_level():
        x = fwAD.make_dual(randn(2), randn(2))
        for dual in (x, x * 2):
            with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
                fwAD.make_dual(dual, randn(2))
        assert fwAD.unpack_dual(fwAD.make_dual(fwAD.unpack_dual(x).primal, randn(2))).tangent is not None


def test_tangents_under_no_grad():
    x, t = rl.tensor([1.0, 2.0]), rl.ones(2)
    layer = rl.nn.Linear(2, 1)
    with rl.no_grad():
        with fwAD.dual_level():
            dual = fwAD.make_dual(x, t)
            primal, tangent = fwAD.unpack_dual(layer(dual.sin()))
        assert not rl.is_grad_enabled()
    assert rl.is_grad_enabled()
    assert not primal.requires_grad and not tangent.requires_grad
    assert rl.allclose(tangent, (layer.weight.detach() * x.cos()).sum(1))


def test_an_op_without_a_derivative_says_so():
    with fwAD.dual_level():
        dual = fwAD.make_dual(rl.rand(3), rl.rand(3))
        with pytest.raises(
            NotImplementedError, match="Trying to use forward AD with .* that does not support it"
        ):
            fwAD.unpack_dual(rl.igamma(dual, dual))
    a = rl.rand(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="is not implemented"):
        rl.igamma(a, a).sum().backward()


def test_a_copy_has_a_tangent_of_its_own():
    t = rl.tensor([5.0, 6.0])
    with fwAD.dual_level():
        copied = rl.zeros(2).copy_(fwAD.make_dual(rl.ones(2), t))
        found = fwAD.unpack_dual(copied).tangent
    assert found is not t and rl.equal(found, t)


def test_running_statistics_have_no_tangents():
    x, mean, var = rl.randn(3, 2, 5), rl.randn(2), rl.rand(2)
    for moving in ((0,), (1,), (0, 1), (0, 2)):
        with fwAD.dual_level():
            args = [
                fwAD.make_dual(a, rl.rand_like(a)) if i in moving else a for i, a in enumerate((x, mean, var))
            ]
            if moving in ((0,), (1,)):
                rl.nn.functional.batch_norm(*args)
                continue
            with pytest.raises(RuntimeError, match="not differentiable wrt running_mean and running_var"):
                rl.nn.functional.batch_norm(*args)


def test_jvp_of_functions_that_write_to_their_arguments():
    def f(x, y):
        view = x[::2]
        view.copy_(y)
        return x, view * 2

    x, xt = rl.tensor([1.0, 2.0, 3.0]), rl.tensor([4.0, 5.0, 6.0])
    y, yt = rl.tensor([7.0, 8.0]), rl.tensor([9.0, 10.0])
    given = x.clone()
    (out, _), (moved, twice) = rl.func.jvp(f, (given, y), (xt, yt))
    assert out.tolist() == given.tolist() == [7.0, 2.0, 8.0]
    assert moved.tolist() == [9.0, 5.0, 10.0] and twice.tolist() == [18.0, 20.0]
    mapped = rl.vmap(lambda *a: rl.func.jvp(f, a[:2], a[2:]))
    _, (moved, twice) = mapped(*(rl.stack([a, a]) for a in (x, y, xt, yt)))
    assert moved.tolist() == [[9.0, 5.0, 10.0]] * 2 and twice.tolist() == [[18.0, 20.0]] * 2
    with pytest.raises(RuntimeError, match="only contain Tensors"):
        rl.func.jvp(rl.sin, (x,), (1.0,))
