"""Compiled steps: what is replayed, what is not, and that neither can be told from eager code."""

import gc
import threading
import warnings
import weakref

import pytest

import rushlight as rl
import rushlight.nn.functional as F
from rushlight import nn


def variants(f):
    return f._compiler.core.variants


def replays(f):
    return sum(v.figures()["replays"] for v in variants(f))


def reasons(f):
    return " ".join(f._compiler.breaks)


def trainer(optimizer, seed=0, schedule=False, layers=None):
    rl.manual_seed(seed)
    net = layers() if layers else nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    opt = optimizer(net.parameters())
    scheduler = rl.optim.lr_scheduler.StepLR(opt, 3, 0.5) if schedule else None

    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        if scheduler is not None:
            scheduler.step()
        return loss

    return net, step


def lockstep(make, calls=12, batches=None):
    """Trains two nets of one seed, one compiled, and compares all of them after each step."""
    net, step = make()
    other, compiled = make()
    compiled = rl.compile(compiled)
    for i in range(calls):
        rl.manual_seed(i)
        x, y = batches(i) if batches else (rl.randn(5, 4), rl.randint(0, 3, (5,)))
        before = rl.get_rng_state()
        loss = step(x, y)
        after = rl.get_rng_state()
        rl.set_rng_state(before)
        assert rl.equal(loss, compiled(x, y))
        assert rl.equal(after, rl.get_rng_state())
        for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True):
            assert rl.equal(a, b)
        for a, b in zip(net.parameters(), other.parameters(), strict=True):
            assert a._version == b._version and rl.equal(a.grad, b.grad)
    return compiled


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: rl.optim.SGD(p, lr=0.1),
        lambda p: rl.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        lambda p: rl.optim.Adam(p, lr=0.01),
        lambda p: rl.optim.AdamW(p, lr=0.01, amsgrad=True),
        lambda p: rl.optim.RMSprop(p, lr=0.01, momentum=0.5),
    ],
)
@pytest.mark.parametrize("schedule", [False, True])
def test_whole_steps_train_alike(optimizer, schedule):
    f = lockstep(lambda: trainer(optimizer, schedule=schedule))
    assert replays(f) >= 7, reasons(f)


def test_work_after_the_optimizers_step():
    """What dies while a recording pauses leaves its addresses to others."""
    for seed in range(30):
        rl.manual_seed(seed)
        w, x = rl.randn(4, requires_grad=True), rl.randn(6, 4)
        opt = rl.optim.SGD([w], lr=0.1, momentum=0.9)
        schedule = rl.optim.lr_scheduler.StepLR(opt, 2, 0.5)

        def step(w=w, x=x, opt=opt, schedule=schedule):
            opt.zero_grad()
            loss = (x * w).pow(2).mean()
            loss.backward()
            opt.step()
            schedule.step()
            y = (w.detach() * 2 + 1) * x
            opt.zero_grad()
            return loss.detach() * 2, y.sum(0) * 3

        fast = rl.compile(step)
        for _ in range(6):
            before = w.detach().clone()
            loss, y = fast()
            assert rl.equal(loss, (x * before).pow(2).mean() * 2) and w.grad is None
            assert rl.equal(y, ((w.detach() * 2 + 1) * x).sum(0) * 3)
        assert replays(fast) >= 2, reasons(fast)


def test_dropout_and_batch_norm():
    def layers():
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))

    f = lockstep(lambda: trainer(lambda p: rl.optim.Adam(p), layers=layers))
    assert replays(f) >= 7, reasons(f)


def test_last_batch_is_shorter():
    def batches(i):
        n = 3 if i % 4 == 3 else 5
        return rl.randn(n, 4), rl.randint(0, 3, (n,))

    f = lockstep(lambda: trainer(lambda p: rl.optim.SGD(p, lr=0.1)), 24, batches)
    assert len(variants(f)) == 2 and replays(f) >= 12


def test_ignored_classes_change_the_mean():
    def batches(i):
        y = rl.randint(0, 3, (5,))
        if i > 6:
            y[: i % 3] = -100
        return rl.randn(5, 4), y

    assert replays(lockstep(lambda: trainer(lambda p: rl.optim.SGD(p, lr=0.1)), 24, batches)) >= 3


def test_an_error_is_eagers_error_and_leaves_eagers_state():
    net, step = trainer(lambda p: rl.optim.SGD(p, lr=0.1))
    step = rl.compile(step)
    x, y = rl.randn(5, 4), rl.tensor([0, 1, 2, 0, 1])
    for _ in range(5):
        step(x, y)
    assert replays(step) >= 1
    state = [p.detach().clone() for p in net.parameters()]
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        step(x, rl.tensor([0, 1, 7, 0, 1]))
    assert all(rl.equal(a, b) for a, b in zip(state, net.parameters(), strict=True))
    assert all(p.grad is None for p in net.parameters())
    step(x, y)


def test_results_are_new_in_each_call():
    w = rl.randn(3)

    @rl.compile
    def f(x):
        y = x * w
        return y, (y + 1).view(3, 1)

    held = [(x, f(x)) for x in (rl.randn(3) for _ in range(8))]
    for x, (y, z) in held:
        assert rl.equal(y, x * w) and rl.equal(z[:, 0], x * w + 1)
        y.zero_()
    assert replays(f) >= 4


def test_writes_to_tensors_outside_are_seen_and_counted():
    total, count = rl.zeros(3), rl.zeros((), dtype=rl.int64)

    @rl.compile
    def f(x):
        total.add_(x)
        count.add_(1)
        x.mul_(2)

    for i in range(8):
        x = rl.ones(3)
        f(x)
        assert x.tolist() == [2.0] * 3 and x._version == 1
        assert total.tolist() == [i + 1.0] * 3 and count.item() == i + 1 and total._version == i + 1
    assert replays(f) >= 4


def test_gradients_accumulate():
    w = rl.ones(3, requires_grad=True)

    @rl.compile
    def f(x):
        (w * x).sum().backward()

    for i in range(9):
        if i == 6:
            w.grad = None
        f(rl.ones(3))
        assert w.grad.tolist() == [i % 6 + 1.0] * 3
    assert replays(f) >= 2


def test_branches_on_values():
    w = rl.ones(2)

    @rl.compile
    def f(x):
        w.mul_(2)
        if x.sum() > 0:
            return x + w
        return x - w

    expected = 1.0
    for i in range(30):
        sign = 1.0 if i % 3 else -1.0
        expected = expected * 2 if expected < 1000 else 1.0
        if expected == 1.0:
            w.fill_(0.5)
        assert f(rl.full((2,), sign)).tolist() == [sign + sign * expected] * 2
    assert len(variants(f)) == 2 and replays(f) >= 15


def test_python_side_effects_happen_each_time():
    seen, box = [], {"calls": 0}

    @rl.compile
    def appends(x):
        seen.append(len(seen))
        return x + 1

    @rl.compile
    def counts(x):
        box["calls"] += 1
        return x + 1

    for i in range(6):
        appends(rl.ones(2))
        counts(rl.ones(2))
        assert len(seen) == i + 1 and box["calls"] == i + 1
    assert replays(appends) == replays(counts) == 0
    assert "changes" in reasons(appends) and "changes" in reasons(counts)


def test_printing_happens_each_time(capsys):
    @rl.compile
    def f(x):
        print("called")
        return x + 1

    for _ in range(5):
        f(rl.ones(2))
    assert capsys.readouterr().out == "called\n" * 5 and "print" in reasons(f)


def test_a_branch_taken_later_prints(capsys):
    settings = {"loud": False}

    @rl.compile
    def f(x):
        if settings["loud"]:
            print("called")
        return x + 1

    for i in range(12):
        settings["loud"] = i >= 6
        f(rl.ones(2))
    assert capsys.readouterr().out == "called\n" * 6


gain = 2.0


@pytest.mark.filterwarnings("ignore:compile")  # it changes more often than there are variants
def test_what_the_function_reads_may_change():
    class Holder:
        scale = 3.0

    holder, table, shift = Holder(), {"a": 1.0}, [4.0]

    @rl.compile
    def f(x, power, *, bias=0.0):
        return (x * gain * holder.scale + table["a"] + shift[0]) ** power + bias

    def check(power=1, **kw):
        x = rl.tensor([2.0])
        want = (2.0 * gain * holder.scale + table["a"] + shift[0]) ** power + kw.get("bias", 0.0)
        assert f(x, power, **kw).item() == want

    global gain
    for change in (
        lambda: None,
        lambda: globals().__setitem__("gain", 5.0),
        lambda: setattr(holder, "scale", 2.0),
        lambda: setattr(Holder, "scale", 7.0),
        lambda: holder.__dict__.pop("scale"),
        lambda: table.__setitem__("a", 9.0),
        lambda: shift.__setitem__(0, 1.0),
    ):
        change()
        for _ in range(4):
            check()
            check(bias=1.0)
    check(2)
    assert replays(f) >= 4
    gain = 2.0


def test_modules_and_parameters_may_change():
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    x = rl.randn(2, 3)

    @rl.compile
    def f(x):
        with rl.no_grad():
            return net(x)

    def check():
        for _ in range(4):
            state = rl.get_rng_state()
            one = f(x)
            rl.set_rng_state(state)
            with rl.no_grad():
                assert rl.equal(one, net(x))

    check()
    net.eval()
    check()
    net[0].weight.data = net[0].weight.data * 2
    check()
    with rl.no_grad():
        net[0].bias.add_(1)
    check()
    net[0] = nn.Linear(3, 5)
    check()
    net[0].weight = nn.Parameter(rl.ones(5, 3))
    check()
    seen = []
    net[0].register_forward_hook(lambda *a: seen.append(1))
    check()
    assert len(seen) == 8
    assert replays(f) >= 5


def test_hooks_on_parameters_run():
    w = rl.ones(2, requires_grad=True)

    @rl.compile
    def f():
        w.grad = None
        (w * 3).sum().backward()

    for _ in range(5):
        f()
    assert replays(f) >= 1
    handle = w.register_hook(lambda g: g * 2)
    for _ in range(5):
        f()
        assert w.grad.tolist() == [6.0, 6.0]
    handle.remove()
    f()
    assert w.grad.tolist() == [3.0, 3.0]


def test_modes_and_defaults():
    w = rl.ones(2, requires_grad=True)

    @rl.compile
    def f(x):
        return (x * w).detach() + rl.zeros(2)

    for _ in range(4):
        f(rl.ones(2))
    rl.set_default_dtype(rl.float64)
    try:
        assert f(rl.ones(2)).dtype == rl.float64
    finally:
        rl.set_default_dtype(rl.float32)
    with rl.no_grad():
        assert f(rl.ones(2)).dtype == rl.float32
    with rl.inference_mode():
        assert f(rl.ones(2)).is_inference()


def test_arguments_that_share_memory():
    @rl.compile
    def f(a, b):
        a.add_(1)
        return b * 2

    for _ in range(5):
        assert f(rl.zeros(2), rl.zeros(2)).tolist() == [0.0, 0.0]
    x = rl.zeros(2)
    for i in range(5):
        assert f(x, x.view(2)).tolist() == [2.0 * (i + 1)] * 2
    base = rl.zeros(3)
    assert f(base[:2], base[1:]).tolist() == [2.0, 0.0]


def test_a_graph_that_is_needed_later_stays():
    w = rl.ones(2, requires_grad=True)

    @rl.compile
    def f(x):
        return (x * w).sum()

    for _ in range(5):
        w.grad = None
        f(rl.ones(2)).backward()
        assert w.grad.tolist() == [1.0, 1.0]
    assert replays(f) == 0 and "graph" in reasons(f)


def test_a_second_backward_is_refused():
    w = rl.ones(2, requires_grad=True)

    @rl.compile
    def f(x):
        loss = (x * w * w).sum()
        loss.backward()
        return loss

    for _ in range(6):
        loss = f(rl.ones(2))
    assert replays(f) >= 1 and loss.requires_grad and not loss.is_leaf
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_reading_a_loss_is_not_replayed():
    @rl.compile
    def f(x):
        return x.sum().item()

    for i in range(8):
        assert f(rl.tensor([float(i)])) == i
    assert replays(f) == 0


def test_too_many_ways_warn_once():
    @rl.compile
    def f(x, k):
        return x * k

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(40):
            for _ in range(2):
                assert f(rl.ones(2), k).tolist() == [k, k]
    assert [str(w.message) for w in caught if "compile" in str(w.message)] != []
    assert len([w for w in caught if "compile" in str(w.message)]) == 1


def test_fullgraph_names_the_line():
    @rl.compile(fullgraph=True)
    def f(x):
        return x * x.tolist()[0]

    with pytest.raises(Exception, match="the host reads.*x.tolist"):
        for _ in range(4):
            f(rl.ones(2))


def test_modules_are_replayed_without_gradients():
    rl.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    fast = rl.compile(net)
    with rl.no_grad():
        for _ in range(8):
            x = rl.randn(5, 3)
            assert rl.equal(fast(x), net(x))
    call = fast.__dict__["_replays"].call
    assert replays(call) >= 3
    x = rl.randn(5, 3)
    fast(x).sum().backward()
    assert net[0].weight.grad is not None


def test_methods_and_explain():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(rl.ones(3))
            self.fast = rl.compile(self.step)

        def step(self, x):
            self.weight.grad = None
            loss = (self.weight * x).sum()
            loss.backward()
            return loss.detach()

    net = Net()
    for i in range(6):
        assert net.fast(rl.full((3,), float(i))).item() == 3.0 * i
        assert net.weight.grad.tolist() == [float(i)] * 3
    assert replays(net.fast) >= 2, reasons(net.fast)
    told = rl.compiler.explain(net.fast)(rl.ones(3))
    assert told.graph_count >= 1 and "kernel calls" in str(told)
    gone = weakref.ref(net)
    del net, told
    gc.collect()
    assert gone() is None


def test_threads_do_not_share_a_run():
    w = rl.randn(64, 64)

    @rl.compile
    def f(x):
        for _ in range(6):
            x = rl.tanh(x @ w)
        return x

    xs = [rl.randn(64, 64) for _ in range(4)]
    with rl.no_grad():
        want = [f(x) for x in xs]
    wrong = []

    def work(k):
        with rl.no_grad():
            for _ in range(50):
                if not rl.equal(f(xs[k]), want[k]):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_long_chains_are_fused_with_the_same_bits():
    w = rl.randn(50_000, requires_grad=True)

    def step(x):
        w.grad = None
        y = rl.tanh(x * w + 0.5)
        z = (y * y + rl.sigmoid(w) * x).clamp(-1, 1)
        loss = (z - y).pow(2).mean()
        loss.backward()
        return y.detach(), loss

    fast = rl.compile(step)
    for _ in range(6):
        x = rl.randn(50_000)
        one, grad = step(x), w.grad
        two = fast(x)
        assert rl.equal(one[0], two[0]) and rl.equal(one[1], two[1]) and rl.equal(grad, w.grad)
    assert variants(fast)[0].figures()["fused_groups"] >= 2
