"""Sequences of a few different rows, whose products are taken once per different row: against the same layer called
step by step, which has too few rows at a time to look for equal ones."""

import pytest

import rushlight as rl

CELLS = {"LSTM": rl.nn.LSTM, "GRU": rl.nn.GRU, "RNN": rl.nn.RNN}


def run(net, x, step_by_step):
    """Outputs and all gradients of a layer over x, (steps, rows, input)."""
    net.zero_grad()
    x = x.clone().requires_grad_()
    if step_by_step:
        outputs, state = [], None
        for row in x:
            out, state = net(row.unsqueeze(0), state)
            outputs.append(out)
        out = rl.cat(outputs)
    else:
        out, _ = net(x)
    (out * out.cos()).sum().backward()
    return [out.detach(), x.grad, *(p.grad for p in net.parameters())]


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [(5, 9), (16, 40)])
def test_as_step_by_step(kind, bias, sizes):
    rl.manual_seed(0)
    net = CELLS[kind](*sizes, bias=bias, dtype=rl.float64)
    table = rl.randn(7, sizes[0], dtype=rl.float64)
    x = table[rl.randint(0, 7, (20, 11))]
    for mine, expected in zip(run(net, x, False), run(net, x, True), strict=True):
        rl.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", CELLS)
def test_rows_first_packed_and_backwards(kind):
    rl.manual_seed(0)
    net = CELLS[kind](6, 10, batch_first=True, bidirectional=True, dtype=rl.float64)
    words = rl.randint(0, 5, (16, 20))
    x, lengths = rl.randn(5, 6, dtype=rl.float64)[words], rl.arange(20, 4, -1)
    packed = rl.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    out, _ = rl.nn.utils.rnn.pad_packed_sequence(net(packed)[0], batch_first=True)
    for row, length in enumerate(lengths.tolist()):
        alone, _ = net(x[row : row + 1, :length])  # a row alone is plain
        rl.testing.assert_close(out[row : row + 1, :length], alone, rtol=1e-12, atol=1e-12)


def test_special_values_and_different_rows():
    rl.manual_seed(0)
    net = rl.nn.LSTM(4, 8, dtype=rl.float64)
    table = rl.randn(3, 4, dtype=rl.float64)
    table[1] = rl.tensor([0.0, -0.0, 1e300, -1e300])
    x = table[rl.randint(0, 3, (15, 10))]
    x[14, 9] = rl.nan  # one row of its own
    for mine, expected in zip(run(net, x, False), run(net, x, True), strict=True):
        rl.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-10, equal_nan=True)
    x = rl.randn(15, 10, 4, dtype=rl.float64)  # no two are equal
    for mine, expected in zip(run(net, x, False), run(net, x, True), strict=True):
        rl.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", CELLS)
def test_the_same_bits_for_every_number_of_threads(kind):
    rl.manual_seed(0)
    net = CELLS[kind](32, 48)
    x = rl.randn(20, 32)[rl.randint(0, 20, (30, 9))]
    before = rl.get_num_threads()
    try:
        bits = []
        for threads in (1, 2, 5):
            rl.set_num_threads(threads)
            bits.append([t.numpy().tobytes() for t in run(net, x, False)])
        assert bits[0] == bits[1] == bits[2]
    finally:
        rl.set_num_threads(before)


def test_second_derivatives():
    rl.manual_seed(0)
    net = rl.nn.GRU(3, 4, dtype=rl.float64)
    x = rl.randn(4, 3, dtype=rl.float64)[rl.randint(0, 4, (16, 8))].requires_grad_()
    (first,) = rl.autograd.grad(net(x)[0].square().sum(), x, create_graph=True)
    second = rl.autograd.grad(first.square().sum(), list(net.parameters()))
    other = [row.detach().unsqueeze(0).requires_grad_() for row in x]
    state, total = None, 0
    for row in other:
        out, state = net(row, state)
        total = total + out.square().sum()
    rows = rl.autograd.grad(total, other, create_graph=True)
    expected = rl.autograd.grad(sum(r.square().sum() for r in rows), list(net.parameters()))
    for a, b in zip(second, expected, strict=True):
        rl.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
