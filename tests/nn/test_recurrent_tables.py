"""Layers whose input is rows of an embedding: the table gets its gradient by different rows, unless somebody looks at
the gradient of the input itself. A hook looks, so the two code paths are compared with and without one."""

import pytest

import rushlight as rl

CELLS = {
    "LSTM": rl.nn.LSTM,
    "GRU": rl.nn.GRU,
    "tanh": rl.nn.RNN,
    "relu": lambda *sizes, **more: rl.nn.RNN(*sizes, nonlinearity="relu", **more),
}
WORDS, WIDTH, HIDDEN = 9, 6, 10


def made(kind, table=None, **more):
    rl.manual_seed(0)
    table = rl.nn.Embedding(WORDS, WIDTH, dtype=rl.float64, **(table or {}))
    return table, CELLS[kind](WIDTH, HIDDEN, dtype=rl.float64, **more), rl.randint(0, WORDS, (12, 16))


def gradients(table, net, words, look, state=None, also=None):
    parameters = [*table.parameters(), *net.parameters()]
    for p in parameters:
        p.grad = None
    rows = table(words)
    seen = []
    if look:
        rows.register_hook(seen.append)
    out, last = net(rows, state) if state is not None else net(rows)
    loss = (out * out.cos()).sum() + sum(
        h.sin().sum() for h in (last if isinstance(last, tuple) else (last,))
    )
    if also is not None:
        loss = loss + also(rows)
    loss.backward()
    assert len(seen) == look
    return [p.grad for p in parameters]


def compare(*args, **more):
    for mine, expected in zip(
        gradients(*args, look=0, **more), gradients(*args, look=1, **more), strict=True
    ):
        rl.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"batch_first": True},
        {"bidirectional": True, "batch_first": True},
        {"bias": False, "num_layers": 2},
    ],
)
def test_as_with_the_gradient_of_every_row(kind, form):
    compare(*made(kind, **form))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "relu"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_from_a_state(kind, batch_first):
    table, net, words = made(kind, batch_first=batch_first)
    h = rl.randn(1, 12 if batch_first else 16, HIDDEN, dtype=rl.float64)
    compare(table, net, words, state=(h, h.cos()) if kind == "LSTM" else h)


@pytest.mark.parametrize("options", [{"padding_idx": 3}, {"scale_grad_by_freq": True}, {"max_norm": 1.0}])
def test_options_of_the_table(options):
    compare(*made("LSTM", options))


def test_words_of_32_bits_and_equal_words():
    table, net, words = made("LSTM")
    compare(table, net, words.int())
    with rl.no_grad():
        table.weight[4] = table.weight[2]  # two words that cannot be told apart by their rows
    compare(table, net, words)
    compare(table, net, words[:, ::2].repeat(2, 1))


def test_the_rows_are_read_by_others_too():
    table, net, words = made("GRU")
    other = rl.nn.Linear(WIDTH, 2, dtype=rl.float64)
    compare(table, net, words, also=lambda rows: other(rows).square().sum())
    second = rl.nn.LSTM(WIDTH, 4, dtype=rl.float64)
    compare(table, net, words, also=lambda rows: second(rows)[0].square().sum())


def test_whoever_asks_gets_the_gradient_of_the_rows():
    table, net, words = made("LSTM")
    rows = table(words)
    rows.retain_grad()
    net(rows)[0].square().sum().backward()
    expected = rl.zeros_like(table.weight).index_add(0, words.flatten(), rows.grad.flatten(0, 1))
    rl.testing.assert_close(table.weight.grad, expected)

    rows = table(words)
    asked, weight = rl.autograd.grad(net(rows)[0].square().sum(), [rows, table.weight])
    rl.testing.assert_close(asked, rl.autograd.grad(net(rows)[0].square().sum(), rows)[0])
    rl.testing.assert_close(weight, expected)

    seen = []
    out = net(table(words))[0]
    out.grad_fn.register_hook(lambda inputs, _: seen.append(inputs[0]))
    out.square().sum().backward()
    rl.testing.assert_close(seen[0], asked)

    rows = table(words)
    stacked = rl.autograd.grad(
        net(rows)[0], table.weight, rl.randn(3, 12, 16, HIDDEN, dtype=rl.float64), is_grads_batched=True
    )
    assert stacked[0].shape == (3, WORDS, WIDTH) and not stacked[0][0].equal(stacked[0][1])


def test_a_failed_backward_leaves_nothing_behind():
    table, net, words = made("LSTM")
    expected = gradients(table, net, words, look=1)[0]
    fails = [True]

    def hook(gradient):
        if fails:
            fails.pop()
            raise ValueError("stop")

    handle = table.weight.register_hook(hook)
    out = net(table(words))
    loss = (out[0] * out[0].cos()).sum() + sum(h.sin().sum() for h in out[1])
    table.weight.grad = None
    with pytest.raises(ValueError, match="stop"):
        loss.backward(retain_graph=True)
    loss.backward(retain_graph=True)
    rl.testing.assert_close(table.weight.grad, expected)
    loss.backward()
    rl.testing.assert_close(table.weight.grad, 2 * expected)
    handle.remove()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_the_same_bits_for_every_number_of_threads():
    rl.manual_seed(0)
    table, net = rl.nn.Embedding(20, 32), rl.nn.LSTM(32, 48, batch_first=True)
    words = rl.randint(0, 20, (9, 30))
    before = rl.get_num_threads()
    try:
        bits = []
        for threads in (1, 2, 5):
            rl.set_num_threads(threads)
            bits.append([t.numpy().tobytes() for t in gradients(table, net, words, look=0)])
        assert bits[0] == bits[1] == bits[2]
    finally:
        rl.set_num_threads(before)
