"""Forms of calls from PyTorch 1.4 and before: a factor before the tensors it scales. They work, and warn once."""

import warnings

import pytest

import rushlight as rl


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def some(*size):
    return rl.arange(float(rl.Size(size).numel())).sin().reshape(size)


PAIRS = [
    (lambda x, y: x.add(2, y), lambda x, y: x.add(y, alpha=2)),
    (lambda x, y: x.clone().add_(0.5, y), lambda x, y: x.add(y, alpha=0.5)),
    (lambda x, y: rl.add(x, 2, y), lambda x, y: x + 2 * y),
    (lambda x, y: rl.add(x, 3, 2), lambda x, y: x + 6),
    (lambda x, y: x.clone().sub_(2, y), lambda x, y: x - 2 * y),
    (lambda x, y: x.clone().addcmul_(2, y, y), lambda x, y: x + 2 * y * y),
    (lambda x, y: rl.addcmul(x, 2, y, y), lambda x, y: x + 2 * y * y),
    (lambda x, y: x.clone().addcdiv_(-0.1, y, y + 3), lambda x, y: x - 0.1 * y / (y + 3)),
    (lambda x, y: x.clone().addmm_(2, x, y), lambda x, y: 2 * x + x @ y),
    (lambda x, y: x.addmm(2, 3, x, y), lambda x, y: 2 * x + 3 * x @ y),
    (lambda x, y: rl.addmm(2, x, x, y), lambda x, y: 2 * x + x @ y),
    (lambda x, y: rl.addmm(2, x, 3, x, y), lambda x, y: 2 * x + 3 * x @ y),
    (lambda x, y: rl.addmv(2, x[0], 3, x, y[0]), lambda x, y: 2 * x[0] + 3 * x @ y[0]),
    (lambda x, y: x.addr(2, x[0], y[0]), lambda x, y: 2 * x + x[0].outer(y[0])),
    (lambda x, y: rl.baddbmm(2, x[None], x[None], y[None]), lambda x, y: (2 * x + x @ y)[None]),
    (lambda x, y: x.addbmm(2, 3, x[None], y[None]), lambda x, y: 2 * x + 3 * x @ y),
]


@pytest.mark.parametrize("old, new", PAIRS)
def test_same_as_by_name(old, new):
    x, y = some(3, 3), some(3, 3) + 0.5
    rl.testing.assert_close(old(x, y), new(x, y))


def test_gradients_go_through():
    x, y = some(2, 3).requires_grad_(), some(2, 3).requires_grad_()
    rl.add(x, 2, y).sum().backward()
    assert x.grad.eq(1).all() and y.grad.eq(2).all()


def test_errors_speak_of_the_present_form():
    with pytest.raises(TypeError, match="takes 2 positional arguments but 4 were given"):
        rl.add(some(2), 1, some(2), 3)
    assert rl.add._signatures == ["input, other, *, alpha=1"]


def test_it_is_said_once():
    import subprocess
    import sys

    program = "import rushlight as rl; x = rl.ones(2); [x.add_(2, x) for _ in range(3)]"
    run = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True)
    assert run.stderr.count("This overload of add_ is deprecated") == 1, run.stderr
