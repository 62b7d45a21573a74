"""Memory and time of the graph: freed as backward passes, collected in cycles, linear in its size."""

import gc
import weakref

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.profiler import profile


def live():
    return rl._C.ops["_memory_stats"]()


def test_ten_thousand_training_steps_leave_memory_flat():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = rl.optim.Adam(model.parameters())
    x, t = rl.randn(4, 4), rl.tensor([0, 1, 1, 0])

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), t)
            loss.backward()
            optimizer.step()

    gc.collect()
    gc.disable()  # nothing of a step may need the collector
    try:
        train(100)
        before, objects = live(), len(gc.get_objects())
        train(10_000)
        after = live()
        assert after["live_bytes"] == before["live_bytes"]
        assert after["live_blocks"] == before["live_blocks"]
        assert after["cached_bytes"] <= before["cached_bytes"]
        assert len(gc.get_objects()) <= objects + 10
    finally:
        gc.enable()


def test_ten_thousand_way_fan_out_visits_each_node_once():
    x = rl.ones(3, dtype=rl.float64, requires_grad=True)
    n = 10_000
    total = rl.stack([x * k for k in range(n)]).sum()
    with profile() as p:
        total.backward()
    counts = {e.key: e.count for e in p.key_averages()}
    assert counts["MulBackward0"] == n and counts["AccumulateGrad"] == 1 and counts["SumBackward0"] == 1
    assert x.grad[0] == n * (n - 1) / 2


def test_shared_parts_run_once():
    """A ladder of 200 squares has 2^200 paths and 200 nodes."""
    x = y = rl.ones(1, dtype=rl.float64, requires_grad=True)
    for _ in range(200):
        y = (y + y) / 2
    with profile() as p:
        y.sum().backward()
    counts = {e.key: e.count for e in p.key_averages()}
    assert counts["AddBackward0"] == counts["DivBackward0"] == 200
    assert x.grad.item() == pytest.approx(1)


def test_many_inputs():
    xs = [rl.ones(1, requires_grad=True) for _ in range(5000)]
    grads = rl.autograd.grad(rl.stack(xs).sum(), xs)
    assert len(grads) == 5000 and all(g.item() == 1 for g in grads)


def test_saved_tensors_are_freed_as_backward_passes():
    size = 1 << 18
    x = rl.ones(size, requires_grad=True)
    y = x
    held = []
    for _ in range(8):
        y = y.sin()
        held.append(weakref.ref(y))
    loss = y.sum()
    del y
    seen = []

    def note(grads):
        seen.append(live()["live_bytes"])

    node = loss.grad_fn
    while node is not None and type(node).__name__ != "AccumulateGrad":
        node.register_prehook(note)
        node = node.next_functions[0][0]
    before = live()["live_bytes"]
    loss.backward()
    # One saved tensor less at each step; a gradient or two live beside them.
    assert seen[-1] < before - 4 * size * 4
    assert seen[2:] == sorted(seen[2:], reverse=True)
    del loss, node
    gc.collect()
    assert all(ref() is None for ref in held)


def test_cycles_are_collected():
    def through_a_hook():
        x = rl.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: y)
        return weakref.ref(y)

    def through_a_node_hook():
        y = rl.ones(2, requires_grad=True).exp()
        y.grad_fn.register_hook(lambda gi, go: y and None)
        return weakref.ref(y)

    def through_a_write_to_a_view():
        x = rl.ones(2, requires_grad=True) * 1
        y = x * 1
        y[1:].exp_()
        x.register_hook(lambda g: y)  # x's node is reached through the call that the write's node holds
        return weakref.ref(y)

    def through_metadata():
        y = rl.ones(2, requires_grad=True).exp()
        y.grad_fn.metadata["result"] = y
        return weakref.ref(y)

    def through_a_function():
        class Keeps(rl.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 2
                ctx.kept = y
                return y

            @staticmethod
            def backward(ctx, g):
                return g

        y = Keeps.apply(rl.ones(2, requires_grad=True))
        y.grad_fn.self = y
        return weakref.ref(y)

    def through_create_graph():
        x = rl.ones(2, requires_grad=True)
        (x**3).sum().backward(create_graph=True)  # x.grad -> graph -> x
        return weakref.ref(x)

    def through_a_module():
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)

            def forward(self, x):
                self.last = self.fc(x)
                return self.last

        net = Net()
        net(rl.ones(1, 2))
        return weakref.ref(net)

    def through_an_attribute():
        y = rl.ones(2, requires_grad=True).exp()
        y.owner = [y]
        return weakref.ref(y)

    for make in (through_a_hook, through_a_node_hook, through_a_write_to_a_view, through_metadata, through_a_function, through_create_graph,
                 through_a_module, through_an_attribute):  # fmt: skip
        ref = make()
        gc.collect()
        assert ref() is None, make.__name__


def test_graphs_without_cycles_need_no_collector():
    gc.collect()
    gc.disable()
    try:
        x = rl.ones(2, requires_grad=True)
        y = x.exp()
        z = (y * y).sum()
        refs = [weakref.ref(y), weakref.ref(z), weakref.ref(y.grad_fn), weakref.ref(z.grad_fn)]
        z.backward()
        del y, z
        assert all(ref() is None for ref in refs)
    finally:
        gc.enable()


def test_a_million_ops():
    x = y = rl.ones(1, requires_grad=True)
    for _ in range(1_000_000):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1
    del y


def test_a_handle_keeps_no_hook_alive():
    class Big:
        pass

    w, big = rl.ones(2, requires_grad=True), Big()
    t, seen = w * 2, weakref.ref(big)
    handles = [
        t.register_hook(lambda g, big=big: g),
        w.register_hook(lambda g, big=big: g * 2),
        w.register_post_accumulate_grad_hook(lambda p, big=big: None),
        t.grad_fn.register_hook(lambda dx, dy, big=big: None),
        t.grad_fn.register_prehook(lambda dy, big=big: None),
    ]
    t.sum().backward()
    assert w.grad.tolist() == [4, 4] and all(h.hooks_dict_ref() for h in handles)
    del w, t, big
    gc.collect()
    assert seen() is None and [h.hooks_dict_ref() for h in handles] == [None] * 5
    for handle in handles:
        handle.remove()


def test_hooks_are_a_dict():
    w = rl.ones(2, requires_grad=True)
    for call in (lambda: w._add_hook_dict(3), lambda: w._set_post_accumulate_hooks(3), lambda: setattr(w, "_backward_hooks", 3)):  # fmt: skip
        with pytest.raises(TypeError, match="must be a dict"):
            call()


@pytest.mark.parametrize("separate", [False, True])
def test_a_function_defined_inside_a_function_is_collected(separate):
    """With all that its methods refer to; whether its calls are still part of a graph makes no difference."""

    def use(keep):
        held = rl.ones(3)

        class Scale(rl.autograd.Function):
            if separate:

                @staticmethod
                def forward(x):
                    return x * held

                @staticmethod
                def setup_context(ctx, inputs, output):
                    pass
            else:

                @staticmethod
                def forward(ctx, x):
                    return x * held

            @staticmethod
            def backward(ctx, grad):
                return grad * held

        x = rl.ones(3, requires_grad=True)
        y = Scale.apply(x)
        y.sum().backward()
        assert x.grad.tolist() == [1, 1, 1] and y.grad_fn.name() == "ScaleBackward"
        held.y = y if keep else None  # a cycle through the class
        return weakref.ref(Scale), weakref.ref(held)

    for keep in (False, True):
        for _ in range(20):  # memory of one class serves the next
            scale, held = use(keep)
            gc.collect()
            assert scale() is None and held() is None
