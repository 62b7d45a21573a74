"""Exceptions of the user's own code on its way through the graph: nothing stays behind."""

import gc
import weakref

import pytest

import rushlight as rl
from rushlight import memory
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.utils.checkpoint import checkpoint


class Stop(Exception):
    pass


def fail(*_):
    raise Stop


def live_after(work, times=20):
    """How many bytes more are live after some calls of work than before."""
    for _ in range(2):
        work()
    gc.collect()
    before = memory.allocated()
    for _ in range(times):
        work()
    gc.collect()
    return memory.allocated() - before


def caught(work):
    def run():
        with pytest.raises(Stop):
            work()

    return run


def with_hooks(pack, unpack, work):
    with saved_tensors_hooks(pack, unpack):
        return work()


class Fails(rl.autograd.Function):
    where = ""

    @staticmethod
    def forward(x):
        return x.clone() if Fails.where != "forward" else fail()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.own = (ctx, output)  # a cycle
        ctx.save_for_backward(output)
        if Fails.where == "setup_context":
            fail()

    @staticmethod
    def backward(ctx, g):
        return g if Fails.where != "backward" else fail()


def function(where):
    def work():
        Fails.where = where
        Fails.apply(big()).sum().backward()

    return work


def big():
    return rl.ones(100, 100, requires_grad=True)


def hooked(register):
    def work():
        y = big() * 2
        register(y)
        y.sum().backward()

    return work


class Overrides(rl.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (rl.Tensor.sin, rl.sin):
            fail()
        return super().__torch_function__(func, types, args, kwargs or {})


def module_hook(register):
    def work():
        m = rl.nn.Linear(100, 100)
        getattr(m, register)(fail)
        m(big()).sum().backward()

    return work


CASES = {
    "pack": lambda: with_hooks(fail, None, lambda: big().sin()),
    "pack an output": lambda: with_hooks(fail, None, lambda: big().exp()),
    "pack the second": lambda: with_hooks(Second(), None, lambda: big() * big()),
    "pack several results": lambda: with_hooks(fail, None, lambda: big().sort()),
    "pack in place": lambda: with_hooks(fail, None, lambda: (big() + 1).exp_()),
    "pack in place on a view": lambda: with_hooks(fail, None, lambda: (big() + 1)[:50].sin_()),
    "pack in a Function": lambda: with_hooks(fail, None, function("")),
    "unpack": lambda: with_hooks(lambda t: t, fail, lambda: big().sin().sum().backward()),
    "forward": function("forward"),
    "setup_context": function("setup_context"),
    "backward": function("backward"),
    "tensor hook": hooked(lambda y: y.register_hook(fail)),
    "node hook": hooked(lambda y: y.grad_fn.register_hook(fail)),
    "node prehook": hooked(lambda y: y.grad_fn.register_prehook(fail)),
    "leaf hook": lambda: hooked_leaf("register_hook"),
    "post accumulate hook": lambda: hooked_leaf("register_post_accumulate_grad_hook"),
    "__torch_function__": lambda: big().as_subclass(Overrides).sin(),
    "forward hook": module_hook("register_forward_hook"),
    "forward pre-hook": module_hook("register_forward_pre_hook"),
    "backward hook": module_hook("register_full_backward_hook"),
    "backward pre-hook": module_hook("register_full_backward_pre_hook"),
}


class Second:
    def __init__(self):
        self.count = 0

    def __call__(self, t):
        self.count += 1
        return t if self.count == 1 else fail()


def hooked_leaf(register):
    x = big()
    getattr(x, register)(fail)
    (x * 2).sum().backward()


@pytest.mark.parametrize("name", CASES)
def test_an_exception_leaves_no_memory_behind(name):
    assert live_after(caught(CASES[name])) <= 0


WRONG_RESULTS = {
    "tensor hook": (lambda y: y.register_hook(lambda g: 3), TypeError),
    "tensor hook, shape": (lambda y: y.register_hook(lambda g: rl.ones(3)), RuntimeError),
    "node hook": (lambda y: y.grad_fn.register_hook(lambda dx, dy: (rl.ones(1000),) * 3), RuntimeError),
    "node prehook": (lambda y: y.grad_fn.register_prehook(lambda dy: (rl.ones(1000), 3)), RuntimeError),
}


@pytest.mark.parametrize("name", WRONG_RESULTS)
def test_a_hook_with_a_wrong_result_leaves_no_memory_behind(name):
    register, error = WRONG_RESULTS[name]

    def work():
        with pytest.raises(error):
            hooked(register)()

    assert live_after(work) <= 0


@pytest.mark.parametrize("early_stop", [True, False])
def test_checkpoint_frees_what_it_recomputes(early_stop):
    net = rl.nn.Sequential(rl.nn.Linear(100, 100), rl.nn.ReLU(), rl.nn.Linear(100, 100))
    x = rl.randn(64, 100)

    def work():
        with rl.utils.checkpoint.set_checkpoint_early_stop(early_stop):
            checkpoint(net, x, use_reentrant=False).sum().backward()

    assert live_after(work) <= 0


def test_a_pack_hook_may_leave_its_own_block():
    hooks = None

    def pack(t):
        hooks.__exit__()
        return t

    hooks = saved_tensors_hooks(pack, lambda t: t)
    hooks.__enter__()
    x = rl.tensor(2.0, requires_grad=True)
    y = x * x.detach()
    del pack
    gc.collect()
    y.backward()
    assert x.grad == 2


def test_a_context_is_freed_when_forward_raises():
    kept = []

    class F(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.me = ctx
            kept.append(weakref.ref(ctx))
            fail()

    with pytest.raises(Stop):
        F.apply(big())
    gc.collect()
    assert kept[0]() is None


@pytest.mark.parametrize("op", ["sin_", "exp_", "sigmoid_", "square_"])
def test_a_pack_hook_sees_the_values_before_a_write_in_place(op):
    x = rl.tensor([0.5, 1.0], requires_grad=True)
    y = x.clone()
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        getattr(y, op)()
    y.sum().backward()
    (expected,) = rl.autograd.grad(getattr(rl, op[:-1])(x).sum(), x)
    assert rl.equal(x.grad, expected)
