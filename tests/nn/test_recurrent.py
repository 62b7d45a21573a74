"""Recurrent layers: against PyTorch over their options, the same bits for every number of threads, hostile arguments."""

import itertools

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")

LAYERS = {
    "LSTM": ("LSTM", {}),
    "projected": ("LSTM", {"proj_size": 7}),
    "GRU": ("GRU", {}),
    "tanh": ("RNN", {}),
    "relu": ("RNN", {"nonlinearity": "relu"}),
}
# (input, hidden): less than a register, a register and a part, weights beyond a core's cache
SIZES = [(3, 9), (17, 33), (8, 240)]


def run(lib, name, sizes, options, weights, x, states, lengths):
    net = getattr(lib.nn, name)(*sizes, 2, dtype=lib.float64, **options)
    with lib.no_grad():
        for p, w in zip(net.parameters(), weights):
            p.copy_(lib.tensor(w))
    x, *states = (lib.tensor(v).requires_grad_() for v in (x, *states))
    given = x
    if lengths:
        pack = lib.nn.utils.rnn.pack_padded_sequence
        given = pack(x, lengths, batch_first=options["batch_first"], enforce_sorted=False)
    out, last = net(given, tuple(states) if len(states) == 2 else states[0])
    results = [out.data if lengths else out, *(last if isinstance(last, tuple) else (last,))]
    loss = sum((r * r.cos()).sum() for r in results)
    loss.backward()
    tensors = [*results, x.grad, *(s.grad for s in states), *(p.grad for p in net.parameters())]
    return [t.detach().numpy() for t in tensors]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("form", ["full", "packed", "unbatched"])
@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_as_torch(kind, sizes, form):
    name, extra = LAYERS[kind]
    rng = np.random.default_rng(0)
    for bidirectional, batch_first, bias in itertools.product([False, True], repeat=3):
        if sizes[1] > 33 and not (bias and bidirectional):
            continue
        options = {"bidirectional": bidirectional, "batch_first": batch_first, "bias": bias, **extra}
        theirs = getattr(torch.nn, name)(*sizes, 2, **options)
        weights = [rng.uniform(-1, 1, p.shape) / sizes[1] ** 0.5 for p in theirs.parameters()]
        steps, rows = 5, 7
        shape = (rows, steps) if batch_first else (steps, rows)
        batch = () if form == "unbatched" else (rows,)
        x = rng.standard_normal((steps, sizes[0]) if form == "unbatched" else (*shape, sizes[0]))
        directions = 4 if bidirectional else 2
        states = [rng.standard_normal((directions, *batch, extra.get("proj_size", sizes[1])))]
        if name == "LSTM":
            states.append(rng.standard_normal((directions, *batch, sizes[1])))
        lengths = [3, 5, 1, 2, 5, 4, 5] if form == "packed" else None
        mine = run(rl, name, sizes, options, weights, x, states, lengths)
        for a, b in zip(mine, run(torch, name, sizes, options, weights, x, states, lengths), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "tanh"])
@pytest.mark.parametrize("sizes", [(16, 40, 17), (8, 600, 3), (24, 200, 9)])
def test_the_same_bits_for_every_number_of_threads(kind, sizes):
    name, extra = LAYERS[kind]
    i, h, n = sizes
    before = rl.get_num_threads()
    rl.manual_seed(0)
    net = getattr(rl.nn, name)(i, h, bidirectional=True, **extra)
    x = rl.randn(6, n, i)

    def bits(threads):
        rl.set_num_threads(threads)
        net.zero_grad()
        mine = x.clone().requires_grad_()
        out, _ = net(mine)
        out.square().sum().backward()
        return [t.numpy().tobytes() for t in (out.detach(), mine.grad, *(p.grad for p in net.parameters()))]

    try:
        expected = bits(1)
        for threads in (2, 3, 8):
            assert bits(threads) == expected
    finally:
        rl.set_num_threads(before)


def test_two_backwards_through_one_graph():
    net = rl.nn.LSTM(3, 4)
    x = rl.randn(5, 2, 3, requires_grad=True)
    out = net(x)[0].sum()
    (first,) = rl.autograd.grad(out, x, retain_graph=True)
    (second,) = rl.autograd.grad(out, x)
    assert rl.equal(first, second)
    with pytest.raises(RuntimeError, match="second time"):
        rl.autograd.grad(out, x)


def test_derivatives_of_derivatives_where_a_weight_is_also_an_input():
    rl.manual_seed(0)
    w = rl.randn(4, 1, dtype=rl.float64, requires_grad=True)

    def out(w):
        x = (w * w).reshape(2, 2, 1)
        zeros = rl.zeros(2, 1, dtype=rl.float64)
        return rl.nn._core.rnn_layer(x, zeros, zeros, w, w.cos())[0]

    assert rl.autograd.gradcheck(out, (w,))
    assert rl.autograd.gradgradcheck(out, (w,))


def test_only_the_last_state_is_differentiated():
    rl.manual_seed(0)
    net, theirs = rl.nn.GRU(3, 4), torch.nn.GRU(3, 4)
    with torch.no_grad():
        for p, q in zip(theirs.parameters(), net.parameters()):
            p.copy_(torch.tensor(q.detach().numpy()))
    x = np.ones((5, 2, 3), "f")
    a, b = rl.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    net(a)[1].sum().backward()
    theirs(b)[1].sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_half_types_and_meta():
    net = rl.nn.LSTM(3, 4, dtype=rl.bfloat16)
    out, (h, _) = net(rl.randn(5, 2, 3, dtype=rl.bfloat16))
    assert out.dtype == h.dtype == rl.bfloat16
    out.sum().backward()
    assert net.weight_hh_l0.grad.dtype == rl.bfloat16
    out, _ = rl.nn.GRU(3, 4, device="meta")(rl.empty(5, 2, 3, device="meta"))
    assert out.shape == (5, 2, 4) and out.device.type == "meta"


def test_refuses_what_does_not_fit():
    layer = rl.nn._core.rnn_layer
    x, h, wi, wh = rl.randn(5, 2, 3), rl.randn(2, 4), rl.randn(16, 3), rl.randn(16, 4)
    for error, call in [
        (RuntimeError, lambda: layer(x, h, None, wi, wh)),
        (RuntimeError, lambda: layer(x, h, h, wi, rl.randn(16, 5))),
        (RuntimeError, lambda: layer(x, rl.randn(3, 4), h, wi, wh)),
        (RuntimeError, lambda: layer(x[0, 0], h, h, wi, wh)),
        (RuntimeError, lambda: layer(x[:0], h, h, wi, wh)),
        (ValueError, lambda: layer(x, h.double(), h, wi, wh)),
        (ValueError, lambda: layer(x, h, h, wi, wh, mode="RNN")),
        (ValueError, lambda: layer(x[0], h, h, wi, wh, batch_sizes=[2, 3])),
        (ValueError, lambda: layer(x[0], h, h, wi, wh, batch_sizes=[2, 1])),
        (ValueError, lambda: layer(x[0], h, h, wi, wh, batch_sizes=[2, 0])),
        (ValueError, lambda: layer(x[0], h, h, wi, wh, batch_sizes=[])),
    ]:
        with pytest.raises(error):
            call()
    assert layer(x[:, :0], h[:0], h[:0], wi, wh)[0].shape == (5, 0, 4)
