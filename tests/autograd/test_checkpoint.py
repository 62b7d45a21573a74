import pytest

import rushlight as rl
from rushlight.utils import checkpoint as cp

BOTH = pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "hooks"])


def counted(function):
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


@BOTH
def test_same_gradients_and_one_recomputation(reentrant):
    w = rl.arange(3.0).requires_grad_()

    def function(x, scale):
        return (x * w).sin() * scale, "kept"

    x1, x2 = (rl.ones(3, requires_grad=True) for _ in range(2))
    function(x1, 2.0)[0].sum().backward()
    expected, w.grad = (x1.grad, w.grad), None
    watched = counted(function)
    y, text = cp.checkpoint(watched, x2, 2.0, use_reentrant=reentrant)
    assert text == "kept" and watched.calls == 1
    y.sum().backward()
    assert watched.calls == 2
    assert x2.grad.tolist() == expected[0].tolist() and w.grad.tolist() == expected[1].tolist()


@BOTH
def test_dropout_repeats(reentrant):
    x = rl.ones(1000, requires_grad=True)
    rl.manual_seed(0)
    y = cp.checkpoint(lambda t: rl.nn.functional.dropout(t.sin(), 0.5), x, use_reentrant=reentrant)
    rl.rand(7)
    state = rl.get_rng_state()
    y.sum().backward()
    assert bool(((x.grad != 0) == (y != 0)).all())
    assert bool((rl.get_rng_state() == state).all()), "the recomputation disturbed the random stream"


@BOTH
def test_sequential(reentrant):
    rl.manual_seed(0)
    layers = rl.nn.Sequential(*(rl.nn.Linear(4, 4) for _ in range(5)))
    x = rl.ones(2, 4, requires_grad=True)
    layers(x).sum().backward()
    expected = [p.grad.clone() for p in layers.parameters()]
    for segments in (1, 2, 5):
        layers.zero_grad()
        out = cp.checkpoint_sequential(layers, segments, x, use_reentrant=reentrant)
        out.sum().backward()
        for p, e in zip(layers.parameters(), expected, strict=True):
            assert rl.allclose(p.grad, e)
    with pytest.raises(ValueError, match="segments"):
        cp.checkpoint_sequential(layers, 9, x, use_reentrant=reentrant)


def test_keywords_grad_and_retain():
    x = rl.ones(3, requires_grad=True)
    function = counted(lambda t, power=2: t.sin() ** power)
    y = cp.checkpoint(function, x, use_reentrant=False, power=3)
    (g,) = rl.autograd.grad(y.sum(), x, retain_graph=True)
    (again,) = rl.autograd.grad(y.sum(), x)
    expected = 3 * x.sin() ** 2 * x.cos()
    assert rl.allclose(g, expected) and rl.allclose(again, expected)
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_double_backward():
    x = rl.arange(3.0).requires_grad_()
    y = cp.checkpoint(lambda t: t**3, x, use_reentrant=False)
    (g,) = rl.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = rl.autograd.grad(g.sum(), x)
    assert h.tolist() == [0.0, 6.0, 12.0]


def test_nested():
    x = rl.arange(3.0).requires_grad_()

    def inner(t):
        return t.sin().exp()

    def outer(t):
        return cp.checkpoint(inner, t * 2, use_reentrant=False) * t.cos()

    cp.checkpoint(outer, x, use_reentrant=False).sum().backward()
    z = rl.arange(3.0).requires_grad_()
    outer(z).sum().backward()
    assert rl.allclose(x.grad, z.grad)


def test_early_stop_skips_what_is_not_needed():
    reached = []

    def function(t):
        y = t.sin()
        reached.append(1)
        return y + 1  # nothing saved after sin

    x = rl.ones(2, requires_grad=True)
    cp.checkpoint(function, x, use_reentrant=False).sum().backward()
    assert len(reached) == 1
    with cp.set_checkpoint_early_stop(False):
        cp.checkpoint(function, x, use_reentrant=False).sum().backward()
    assert len(reached) == 3


def test_changing_functions_are_caught():
    x = rl.ones(3, requires_grad=True)

    def differing(first, second):
        function = counted(lambda t: first(t) if function.calls == 1 else second(t))
        return cp.checkpoint(function, x, use_reentrant=False).sum()

    with pytest.raises(
        cp.CheckpointError, match="A different number of tensors.*\n.*forward: 2\n.*recomputation: 1"
    ):
        differing(lambda t: t.sin().cos(), lambda t: t.sin()).backward()
    with pytest.raises(cp.CheckpointError, match="different metadata") as caught:
        differing(lambda t: t.sin(), lambda t: t.reshape(3, 1).sin()).backward()
    assert "position 0" in str(caught.value) and "[3, 1]" in str(caught.value)


def test_arguments():
    x = rl.ones(3, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        cp.checkpoint(lambda t: t * 2, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: k"):
        cp.checkpoint(lambda t, k: t, x, use_reentrant=True, k=1)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        cp.checkpoint(lambda t: t, x, use_reentrant=False, determinism_check="x")
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        cp.checkpoint(lambda t: t * 2, rl.ones(2), use_reentrant=True)
    with rl.no_grad():
        assert not cp.checkpoint(lambda t: t * 2, x, use_reentrant=False).requires_grad


def test_modified_input_is_caught():
    x = rl.ones(3, requires_grad=True)
    y = x * 2
    out = cp.checkpoint(lambda t: t.sin(), y, use_reentrant=False)
    with rl.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_reentrant_refuses_gradients_of_certain_inputs():
    x = rl.ones(3, requires_grad=True)
    for differentiate in (lambda y: rl.autograd.grad(y, x), lambda y: y.backward(inputs=[x])):
        y = cp.checkpoint(lambda t: t.sin(), x, use_reentrant=True).sum()
        with pytest.raises(RuntimeError, match="incompatible with .grad"):
            differentiate(y)
    y = cp.checkpoint(lambda t: t.sin(), x, use_reentrant=True).sum()
    y.backward()
    assert x.grad is not None


def test_selective_checkpoint_contexts():
    import functools

    from rushlight.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    def policy(ctx, op, *args, **kwargs):
        saved = op == rl.ops.aten.sin.default
        return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE

    x = rl.tensor([0.5, 1.0], requires_grad=True)
    for given in (policy, [rl.ops.aten.sin.default]):
        contexts = functools.partial(create_selective_checkpoint_contexts, given)
        y = rl.utils.checkpoint.checkpoint(
            lambda t: t.sin().cos(), x, use_reentrant=False, context_fn=contexts
        )
        (g,) = rl.autograd.grad(y.sum(), x)
        (expected,) = rl.autograd.grad(x.sin().cos().sum(), x)
        assert rl.equal(g, expected)
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload"):
        create_selective_checkpoint_contexts([2])
    with pytest.raises(TypeError, match="either a function or a list of ops"):
        create_selective_checkpoint_contexts(2)


def test_a_tensor_is_unpacked_once():
    class F(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            _ = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="already unpacked once"):
                _ = ctx.saved_tensors
            return g * 2

    x = rl.ones(2, requires_grad=True)
    rl.utils.checkpoint.checkpoint(lambda t: F.apply(t * 1), x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == [2, 2]


def _selective(policy, **options):
    import functools

    return functools.partial(cp.create_selective_checkpoint_contexts, policy, **options)


def test_selective_checkpoint_keeps_chosen_results_only_and_once():
    import gc
    import weakref

    from rushlight.utils._python_dispatch import TorchDispatchMode

    runs, dropped = [], []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            runs.append(str(func))
            return func(*args, **kwargs or {})

    def f(x):
        y = x.sin()
        z = y.cos()
        dropped.append(weakref.ref(z))
        return z.exp().mul(3).tanh()

    x = rl.randn(4, requires_grad=True)
    gc.disable()
    try:
        with Count():
            y = cp.checkpoint(
                f, x, use_reentrant=False, context_fn=_selective([rl.ops.aten.sin.default])
            ).sum()
        assert dropped[0]() is None  # and not by a collection
        forward = len(runs)
        with Count():
            y.backward(retain_graph=True)
    finally:
        gc.enable()
    again = runs[forward:]
    assert again.count("aten.sin.default") == 1  # in the derivative of cos alone
    assert again.count("aten.cos.default") == 2  # once recomputed, once in the derivative of sin
    assert rl.allclose(x.grad, rl.autograd.grad(f(x).sum(), x)[0])
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.backward()


def test_selective_checkpoint_finds_writes_to_what_is_kept():
    x = rl.randn(3, requires_grad=True)
    f = lambda t: t.sin().mul_(2).cos().exp()  # noqa: E731
    ops = [rl.ops.aten.sin.default]
    with pytest.raises(RuntimeError, match="has been mutated"):
        cp.checkpoint(f, x, use_reentrant=False, context_fn=_selective(ops)).sum().backward()
    allowed = _selective(ops, allow_cache_entry_mutation=True)
    cp.checkpoint(f, x, use_reentrant=False, context_fn=allowed).sum().backward()


def test_recomputation_stops_before_an_op_whose_input_was_the_last_thing_wanted():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    seen = []

    class See(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **kwargs or {})

    calls = []
    x = rl.tensor(1.0, requires_grad=True)
    with See():
        cp.checkpoint(lambda t: (calls.append(1), t.sin())[1], x, use_reentrant=False).backward()
    assert len(calls) == 2
    assert seen.count(rl.ops.aten.sin.default) == 1


def test_calls_under_a_mode_save_as_nodes_do():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    class Plain(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **kwargs or {})

    a, b = rl.randn(2, 3, requires_grad=True), rl.randn(2, 3)
    packed = []
    with Plain(), rl.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        y = a * b
        assert len(packed) == 1 and packed[0] is b
        y.exp().view(6).view(3, 2)
    assert len(packed) == 2
    with Plain():
        c = a * b
        d = c.exp()
        with rl.no_grad():
            b.add_(1)
        assert c.view(6).view(2, 3).grad_fn._saved_self_sym_sizes == (6,)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            d.sum().backward()


@pytest.mark.parametrize("early_stop", [False, True])
def test_second_derivatives_through_a_checkpoint(early_stop):
    net = rl.nn.Sequential(rl.nn.Linear(4, 5), rl.nn.ReLU(), rl.nn.Linear(5, 3)).double()
    other = rl.randn(6, 3, dtype=rl.float64)

    def function(x):
        return rl.cdist(net(x), other).sum() + rl.linalg.svd(net(x), full_matrices=False).S.sum()

    def second(call):
        x = rl.linspace(-1, 1, 8, dtype=rl.float64).view(2, 4).requires_grad_()
        (g,) = rl.autograd.grad(call(x).pow(2), x, create_graph=True)
        g.pow(2).sum().backward()
        return x.grad

    with cp.set_checkpoint_early_stop(early_stop):
        rl.testing.assert_close(
            second(lambda x: cp.checkpoint(function, x, use_reentrant=False)), second(function)
        )
