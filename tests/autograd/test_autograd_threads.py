"""Backward in several Python threads at a time: leaves, graphs and modules that they share."""

import threading

import pytest

import rushlight as rl


def in_threads(count, work):
    """Runs work(i) in as many threads; raises what one of them raised."""
    errors = []

    def run(i):
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


@pytest.fixture(autouse=True)
def _two_threads():
    before = rl.get_num_threads()
    rl.set_num_threads(2)
    yield
    rl.set_num_threads(before)


def test_no_gradient_of_a_shared_leaf_is_lost():
    w = rl.zeros(700, 700, requires_grad=True)

    def work(_):
        for _ in range(40):
            (w * 1.0).sum().backward()

    in_threads(4, work)
    assert w.grad.min() == w.grad.max() == 160


def test_no_gradient_of_a_shared_module_is_lost():
    layer = rl.nn.Linear(400, 400)
    x = rl.ones(8, 400)

    def work(_):
        for _ in range(20):
            layer(x).sum().backward()

    in_threads(4, work)
    assert (layer.weight.grad == 8 * 80).all()
    assert (layer.bias.grad == 8 * 80).all()


def test_threads_run_one_graph():
    w = rl.ones(300, 300, requires_grad=True)
    hidden = (w * 2).view(-1).view(300, 300)
    hidden.retain_grad()
    y = (hidden * hidden).sum()

    def work(i):
        for _ in range(25):
            if i % 2:
                y.backward(retain_graph=True)
            else:  # other gradients of the same nodes
                (g,) = rl.autograd.grad(y, hidden, retain_graph=True)
                assert (g == 4).all()

    in_threads(4, work)
    assert (w.grad == 8 * 50).all()
    assert (hidden.grad == 4 * 100).all()


def test_a_hook_may_wait_for_the_backward_of_another_thread():
    w = rl.ones(200, 200, requires_grad=True)
    y = (w * 3).sum()

    def hook(_):
        other = threading.Thread(target=lambda: y.backward(retain_graph=True))
        handle.remove()
        other.start()
        other.join(10)
        assert not other.is_alive()

    handle = w.register_hook(hook)
    y.backward(retain_graph=True)
    assert (w.grad == 6).all()


def test_a_graph_of_writes_to_views_in_threads():
    w = rl.ones(200, 200, requires_grad=True)
    x = w * 1
    x[:100].mul_(3)
    y = x.sum()
    in_threads(4, lambda i: [y.backward(retain_graph=True) for _ in range(10)])
    assert (w.grad[:100] == 120).all() and (w.grad[100:] == 40).all()


def test_optimizer_and_zero_grad_beside_backward():
    net = rl.nn.Sequential(rl.nn.Linear(200, 200), rl.nn.ReLU(), rl.nn.Linear(200, 1))
    x = rl.randn(64, 200)
    optimizers = [rl.optim.SGD(net.parameters(), 1e-6, momentum=0.9), rl.optim.AdamW(net.parameters(), 1e-6)]

    def work(i):
        for k in range(30):
            if i < 2:
                try:
                    net(x).sum().backward()
                except RuntimeError as error:  # a step in between changed what backward needs, and it says so
                    assert "modified by an inplace operation" in str(error)
            elif i == 2:
                for opt in optimizers:
                    opt.step()
            else:
                net.zero_grad(set_to_none=k % 2 == 0)

    in_threads(4, work)
    assert all(p.isfinite().all() for p in net.parameters())


def test_recurrent_layer_and_its_table_in_threads():
    table = rl.nn.Embedding(10, 64)
    rnn = rl.nn.LSTM(64, 64)
    y = rnn(table(rl.arange(400).view(50, 8) % 10))[0].sum()
    (once,) = rl.autograd.grad(y, table.weight, retain_graph=True)

    def work(_):
        for _ in range(5):
            (g,) = rl.autograd.grad(y, table.weight, retain_graph=True)
            rl.testing.assert_close(g, once)

    in_threads(4, work)
