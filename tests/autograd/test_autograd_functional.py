"""autograd.functional and gradcheck against torch's."""

import pytest

import rushlight as rl
from rushlight.autograd import functional as ours
from rushlight.autograd import gradcheck as checks

oracle = pytest.importorskip("torch")
theirs = oracle.autograd.functional


def plain(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    return tuple(plain(item) for item in value) if isinstance(value, (tuple, list)) else value


def outcome(function, *args, **kwargs):
    try:
        return plain(function(*args, **kwargs))
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error).replace("rushlight.", "torch.")


def cube_sum(x):
    return (x**3).sum()


def detour(x):
    return x.new_ones(2, requires_grad=True) * 1


# name -> function of (module, library): the call to compare
CALLS = {
    "jacobian": lambda m, lib, **k: m.jacobian(lambda x: x.exp(), lib.arange(3.0), **k),
    "jacobian 2d": lambda m, lib, **k: m.jacobian(
        lambda x: x.t() * x.sum(), lib.arange(6.0).reshape(2, 3), **k
    ),
    "jacobian many": lambda m, lib, **k: m.jacobian(
        lambda x, y: (x * y, (x * x).sum()), (lib.arange(3.0), lib.ones(3)), **k
    ),
    "jacobian constant": lambda m, lib, **k: m.jacobian(lambda x: x.new_ones(2), lib.ones(3), **k),
    "jacobian detached": lambda m, lib, **k: m.jacobian(detour, lib.ones(3), **k),
    "jacobian of number": lambda m, lib, **k: m.jacobian(lambda x: 3, lib.ones(3), **k),
    "jacobian at number": lambda m, lib, **k: m.jacobian(lambda x: x, 3, **k),
    "jacobian linear": lambda m, lib, **k: m.jacobian(lambda x: x * 2, lib.ones(3), **k),
    "hessian": lambda m, lib, **k: m.hessian(cube_sum, lib.arange(3.0), **k),
    "hessian many": lambda m, lib, **k: m.hessian(
        lambda x, y: (x * y**2).sum(), (lib.ones(2), lib.arange(2.0)), **k
    ),
    "hessian linear": lambda m, lib, **k: m.hessian(lambda x: x.sum(), lib.ones(2), **k),
    "hessian vector": lambda m, lib, **k: m.hessian(lambda x: x, lib.ones(2), **k),
    "hessian tuple": lambda m, lib, **k: m.hessian(lambda x: (x, x), lib.ones(2), **k),
    "vjp": lambda m, lib, **k: m.vjp(lambda x: x**2, lib.arange(3.0), lib.ones(3), **k),
    "vjp scalar": lambda m, lib, **k: m.vjp(cube_sum, lib.arange(3.0), **k),
    "vjp no v": lambda m, lib, **k: m.vjp(lambda x: x, lib.arange(3.0), **k),
    "vjp size": lambda m, lib, **k: m.vjp(lambda x: x, lib.arange(3.0), lib.ones(2), **k),
    "vjp count": lambda m, lib, **k: m.vjp(lambda x: x, lib.arange(3.0), (lib.ones(3),) * 2, **k),
    "vjp constant": lambda m, lib, **k: m.vjp(lambda x: x.new_ones(1), lib.ones(3), lib.ones(1), **k),
    "jvp": lambda m, lib, **k: m.jvp(
        lambda x, y: (x * y, x.sum()), (lib.arange(3.0), lib.ones(3)), (lib.ones(3), lib.arange(3.0)), **k
    ),
    "jvp number": lambda m, lib, **k: m.jvp(lambda x: x**3, lib.tensor([2.0]), **k),
    "jvp no v": lambda m, lib, **k: m.jvp(lambda x: x, lib.arange(3.0), **k),
    "jvp constant": lambda m, lib, **k: m.jvp(lambda x: x.new_ones(1), lib.ones(3), lib.ones(3), **k),
    "vhp": lambda m, lib, **k: m.vhp(cube_sum, lib.arange(3.0), lib.arange(3.0), **k),
    "hvp": lambda m, lib, **k: m.hvp(cube_sum, lib.arange(3.0), lib.arange(3.0), **k),
    "hvp many": lambda m, lib, **k: m.hvp(
        lambda x, y: (x * y**2).sum(), (lib.ones(2), lib.arange(2.0)), (lib.ones(2), lib.ones(2)), **k
    ),
    "hvp linear": lambda m, lib, **k: m.hvp(lambda x: x.sum(), lib.ones(2), lib.ones(2), **k),
    "hvp vector": lambda m, lib, **k: m.hvp(lambda x: x**3, lib.ones(2), lib.ones(2), **k),
    "vhp linear": lambda m, lib, **k: m.vhp(lambda x: x.sum(), lib.ones(2), lib.ones(2), **k),
}


@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"strict": True}], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_functional(name, options):
    assert outcome(CALLS[name], ours, rl, **options) == outcome(CALLS[name], theirs, oracle, **options)


def test_graphs():
    x = rl.arange(3.0).requires_grad_()
    ours.jacobian(lambda t: t**3, x, create_graph=True).sum().backward()
    assert x.grad.tolist() == [0.0, 6.0, 12.0]
    assert not ours.jacobian(lambda t: t**3, x).requires_grad
    assert not ours.vjp(lambda t: t**3, x, rl.ones(3))[1].requires_grad
    x.grad = None
    ours.hvp(cube_sum, x, rl.ones(3), create_graph=True)[1].sum().backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]
    with rl.no_grad():
        assert ours.jacobian(lambda t: t * 2, rl.ones(1)).tolist() == [[2.0]]


def test_empty_output():
    assert tuple(ours.jacobian(lambda t: t[:0], rl.ones(3)).shape) == (0, 3)


def double(*shape, requires_grad=True):
    rl.manual_seed(0)
    return rl.rand(*shape, dtype=rl.float64).requires_grad_(requires_grad)


def wrong_backward(factor, forward=lambda x: x * 2):
    class Wrong(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return forward(x)

        @staticmethod
        def backward(ctx, g):
            return factor(g)

    return Wrong.apply


def test_gradcheck_accepts_right_gradients():
    assert checks.gradcheck(lambda x, y: (x * y).sin(), (double(2, 3), double(3)))
    assert checks.gradcheck(lambda x: (x, x.detach() * 2), double(3))
    assert checks.gradcheck(lambda x: x.t() ** 2, double(3, 2).t().detach().requires_grad_())
    assert checks.gradcheck(lambda x, n: x[n], (double(4), 2))
    assert checks.gradgradcheck(lambda x, y: x**3 * y, (double(3), double(3)))
    assert checks.gradgradcheck(lambda x: x**3, double(2, 2), gen_non_contig_grad_outputs=True)
    assert checks.gradcheck(lambda x: x * 2, double(0, 3), fast_mode=True)


def test_gradcheck_of_complex_functions():
    z = rl.complex(double(3).detach(), double(3).detach() + 1).requires_grad_()
    assert checks.gradcheck(lambda z: z * z * 2j, z)
    assert checks.gradcheck(lambda z: z.abs(), z)
    assert checks.gradcheck(lambda x: x * (1 + 2j), double(3))
    assert checks.gradgradcheck(lambda z: z * z, z)
    conjugated = wrong_backward(lambda g: g * 2j, lambda z: z * 2j)
    with pytest.raises(
        checks.GradcheckError, match="imaginary part of complex outputs only, Jacobian mismatch"
    ):
        checks.gradcheck(conjugated, z)


def test_fast_gradcheck_leaves_the_random_stream_alone():
    x = rl.tensor([1.0, -2.0, -3.0], dtype=rl.float64, requires_grad=True)

    def noisy(x):
        state = rl.get_rng_state()
        try:
            return x * rl.rand(3, dtype=rl.float64)
        finally:
            rl.set_rng_state(state)

    before = rl.get_rng_state()
    assert rl.autograd.gradcheck(noisy, (x,), fast_mode=True)
    assert rl.equal(before, rl.get_rng_state())


def test_tolerance_of_fast_gradcheck_is_that_of_an_entry():
    class Off(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, error):
            ctx.error = error
            return x.sum()

        @staticmethod
        def backward(ctx, grad):
            return grad.expand(400) * (1 + ctx.error), None

    x = rl.ones(400, dtype=rl.float64, requires_grad=True)
    for error, right in ((0.9e-2, True), (3.0, False)):
        options = {"atol": 1e-2, "rtol": 0.0, "raise_exception": False}
        for fast in (True, False):
            assert (
                rl.autograd.gradcheck(lambda x, e=error: Off.apply(x, e), (x,), fast_mode=fast, **options)
                is right
            )


def test_gradcheck_names_the_wrong_entry():
    def factor(g):
        g = g * 2
        return g + rl.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=rl.float64) * g

    with pytest.raises(checks.GradcheckError) as caught:
        checks.gradcheck(wrong_backward(factor), double(2, 2))
    text = str(caught.value)
    assert text.startswith("Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor(")
    assert "d output[1, 1] / d input[1, 1]" in text and "4.0 analytically" in text
    assert not checks.gradcheck(wrong_backward(factor), double(2, 2), raise_exception=False)


def test_gradcheck_other_faults():
    with pytest.raises(checks.GradcheckError, match="expected to be zero"):
        checks.gradcheck(lambda x: x.detach() * 2, double(2))
    noisy = wrong_backward(lambda g: g * (2 + rl.rand(1, dtype=rl.float64) * 1e-9))
    with pytest.raises(checks.GradcheckError, match="not reentrant"):
        checks.gradcheck(noisy, double(2))
    assert checks.gradcheck(noisy, double(2), nondet_tol=1e-6)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        checks.gradcheck(lambda x: x, double(2, requires_grad=False))
    with pytest.raises(RuntimeError, match="stride 0"):
        checks.gradcheck(lambda x: x, double(1).detach().expand(3).requires_grad_())
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double"):
        assert checks.gradcheck(lambda x: x * 2, rl.ones(2, requires_grad=True), eps=1e-3, atol=1e-2)
    x = double(3)
    before = x.tolist()
    checks.gradcheck(lambda x: x * 2, x)
    assert x.tolist() == before
