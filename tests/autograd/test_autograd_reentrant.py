"""Backward inside backward, and inside the forward of a checkpoint."""

import pytest

import rushlight as rl
from rushlight.utils.checkpoint import checkpoint, set_checkpoint_early_stop


class Countdown(rl.autograd.Function):
    """x - 1, whose backward runs the backward of another Countdown until x is negative."""

    ended: list = []

    @staticmethod
    def forward(ctx, x):
        with rl.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    @staticmethod
    def backward(ctx, grad):
        if ctx.x < 0:
            Countdown.ended.append(rl.is_grad_enabled())
            return grad
        with rl.enable_grad():
            Countdown.apply(ctx.x).sum().backward()
        return grad


@pytest.mark.parametrize("depth", [3, 100, 2000])
def test_depth_has_no_limit(depth):
    Countdown.ended.clear()
    x = rl.tensor(float(depth), requires_grad=True)
    Countdown.apply(x).sum().backward()
    assert x.grad == 1 and Countdown.ended == [False]


@pytest.mark.parametrize("start", [-1.0, 99.0])
def test_exceptions_come_back_from_any_depth(start):
    class Failing(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach()
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if ctx.x < 0:
                raise ValueError("at the bottom")
            with rl.enable_grad():
                Failing.apply((ctx.x - 1).requires_grad_()).backward()
            return grad

    with pytest.raises(ValueError, match="at the bottom"):
        Failing.apply(rl.tensor(start, requires_grad=True)).backward()
    x = rl.ones(1, requires_grad=True)  # the next backward knows nothing of it
    (x * 2).backward()
    assert x.grad == 2


@pytest.mark.parametrize("early_stop", [True, False])
def test_gradient_inside_a_checkpoint(early_stop):
    def f(x):
        y = x.sin().exp()
        (g,) = rl.autograd.grad(y.sum(), x, create_graph=True)
        return g.cos() * y

    x = rl.tensor([0.3, 0.7], dtype=rl.float64, requires_grad=True)
    with set_checkpoint_early_stop(early_stop):
        out = checkpoint(f, x, use_reentrant=False)
    (got,) = rl.autograd.grad(out.sum(), x)
    (expected,) = rl.autograd.grad(f(x).sum(), x)
    assert rl.equal(got, expected)
