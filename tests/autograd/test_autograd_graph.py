"""Hooks on saved tensors, gradient edges, anomaly mode."""

import pytest

import rushlight as rl


def test_saved_tensors_hooks():
    seen = []

    def pack(t):
        seen.append(tuple(t.shape))
        return t.tolist()

    x = rl.ones(3, requires_grad=True)
    with rl.autograd.graph.saved_tensors_hooks(pack, rl.tensor):
        y = x.exp() * x
    z = y.sin()
    assert len(seen) == 3
    z.sum().backward()
    expected = rl.ones(3, requires_grad=True)
    (expected.exp() * expected).sin().sum().backward()
    assert rl.allclose(x.grad, expected.grad)
    with rl.autograd.graph.save_on_cpu():
        w = x.exp()
    (g,) = rl.autograd.grad(w.sum(), x)
    assert rl.allclose(g, x.exp())


def test_hooks_end_with_their_block_after_an_error():
    with pytest.raises(KeyError), rl.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        raise KeyError
    rl.ones(2, requires_grad=True).exp()
    with (
        pytest.raises(ZeroDivisionError),
        rl.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t),
    ):
        rl.ones(2, requires_grad=True).exp()


def test_gradient_edges():
    x = rl.ones(2, requires_grad=True)
    y = x.exp()
    edge = rl.autograd.graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0 and isinstance(edge.node, rl.autograd.graph.Node)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        rl.autograd.graph.get_gradient_edge(rl.ones(2))


def test_anomaly_mode_is_scoped():
    assert not rl.is_anomaly_enabled()
    with rl.autograd.set_detect_anomaly(True, check_nan=False):
        assert rl.is_anomaly_enabled() and not rl.is_anomaly_check_nan_enabled()
    assert not rl.is_anomaly_enabled()
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = rl.autograd.detect_anomaly()
    with mode:
        x = rl.tensor([-1.0], requires_grad=True)
        y = x.sqrt().sum()
        with pytest.raises(RuntimeError, match="returned nan values"):
            y.backward()
    assert not rl.is_anomaly_enabled()


def test_gradcheck_is_both_module_and_function():
    from rushlight.autograd.gradcheck import gradcheck

    x = rl.ones(2, dtype=rl.float64, requires_grad=True)
    assert gradcheck(lambda t: t * 2, x) and rl.autograd.gradcheck(lambda t: t * 2, x)
    assert rl.autograd.gradgradcheck(lambda t: t**2, x)


def test_an_edge_outlives_set_():
    x = rl.rand(2, requires_grad=True)
    edge = rl.autograd.graph.get_gradient_edge(x)
    y = x.clone()
    with rl.no_grad():
        x.set_(rl.rand(2))
    with pytest.raises(RuntimeError, match="to not have been used in the graph"):
        rl.autograd.grad(y.sum(), x)
    assert rl.equal(rl.autograd.grad(y.sum(), edge)[0], rl.ones(2))


def test_new_random_tensors_were_never_written_to():
    like = rl.zeros(2)
    made = [
        rl.rand(2),
        rl.randn(2),
        rl.randint(3, (2,)),
        rl.randperm(4),
        rl.rand_like(like),
        rl.randn_like(like),
    ]
    made += [rl.randint_like(like, 3), rl.normal(0.0, 1.0, (2,))]
    assert [t._version for t in made] == [0] * len(made)
    assert rl.rand(2, out=like)._version == 1
