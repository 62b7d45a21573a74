"""Recurrent layers of fp16 and bf16 against the same layers in float64."""

import pytest

import rushlight as rl

EPS = {rl.bfloat16: 2.0**-8, rl.float16: 2.0**-11}
REDUCED = list(EPS)
KINDS = ["LSTM", "GRU", "RNN_TANH", "RNN_RELU"]


def layer(kind, *sizes, **options):
    if kind.startswith("RNN"):
        return rl.nn.RNN(*sizes, nonlinearity=kind[4:].lower(), **options)
    return getattr(rl.nn, kind)(*sizes, **options)


def both(kind, dtype, *sizes, **options):
    own = layer(kind, *sizes, **options).to(dtype)
    exact = layer(kind, *sizes, **options).double()
    exact.load_state_dict({name: value.double() for name, value in own.state_dict().items()})
    return own, exact


def flat(results):
    out, states = results
    return [out, *(states if isinstance(states, tuple) else (states,))]


def close(own, exact, dtype, roundings=4):
    """Of the size that the largest has: what is small is the difference of what is large."""
    for result, wanted in zip(own, exact, strict=True):
        assert result.dtype == dtype and result.shape == wanted.shape
        assert (result.double() - wanted).abs().max() <= roundings * EPS[dtype] * wanted.abs().max()


def results_of(net, x, states, kind):
    """The results, and the gradients of all that has one."""
    x = x.detach().to(kind).requires_grad_()
    states = [s.detach().to(kind).requires_grad_() for s in states]
    given = () if not states else (states[0],) if len(states) == 1 else (tuple(states),)
    results = flat(net(x, *given))
    rl.autograd.backward(results, [rl.linspace(-1, 2, r.numel()).reshape(r.shape).to(kind) for r in results])
    return [r.detach() for r in results] + [t.grad for t in (x, *states, *net.parameters())]


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("rows", "steps", "inputs", "hidden", "options"),
    [
        (1, 1, 1, 1, {}),
        (2, 3, 3, 5, {"bias": False}),
        (3, 6, 6, 16, {"batch_first": True}),
        (5, 4, 7, 33, {"bidirectional": True, "num_layers": 2}),
        (50, 5, 40, 48, {"batch_first": True}),
        (3, 4, 300, 301, {}),
        (2, 9, 600, 260, {"batch_first": True, "bidirectional": True}),
    ],
)
def test_results_and_gradients(rows, steps, inputs, hidden, options, kind, dtype):
    rl.manual_seed(0)
    own, exact = both(kind, dtype, inputs, hidden, **options)
    x = rl.randn(rows, steps, inputs) if options.get("batch_first") else rl.randn(steps, rows, inputs)
    many = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    start = [rl.randn(many, rows, hidden).to(dtype) for _ in range(2 if kind == "LSTM" else 1)]
    for states in ([], start):
        mine = results_of(own, x.to(dtype), states, dtype)
        wanted = results_of(exact, x.to(dtype), states, rl.float64)
        smooth = len(mine) if kind != "RNN_RELU" else 2  # a rounding decides whether a gradient passes
        close(mine[:smooth], wanted[:smooth], dtype, 8)
        for result, like in zip(mine[smooth:], wanted[smooth:], strict=True):
            assert (result.double() - like).norm() <= 0.1 * like.norm()
        for net in (own, exact):
            net.zero_grad()
    with rl.no_grad():  # without a workspace
        out = own(x.to(dtype), *((tuple(start),) if kind == "LSTM" else start))[0]
    assert rl.equal(out, mine[0])


@pytest.mark.parametrize("kind", KINDS)
def test_packed_and_odd_addresses(kind):
    rl.manual_seed(1)
    dtype = rl.bfloat16
    own, exact = both(kind, dtype, 6, 20, bidirectional=True)
    x = rl.randn(7 * 4 * 6 + 1).to(dtype)[1:].view(7, 4, 6)  # begins within a word
    lengths = [7, 5, 5, 1]
    pack = rl.nn.utils.rnn.pack_padded_sequence
    mine, wanted = own(pack(x, lengths)), exact(pack(x.double(), lengths))
    close(flat((mine[0].data, mine[1])), flat((wanted[0].data, wanted[1])), dtype)
    close(flat(own(x)), flat(exact(x.double())), dtype)
    every_other = rl.randn(7, 4, 12).to(dtype)[..., ::2]
    close(flat(own(every_other)), flat(exact(every_other.double())), dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [7, 32])
def test_words_that_repeat(width, kind):
    rl.manual_seed(2)
    dtype = rl.bfloat16
    own, exact = both(kind, dtype, width, 24, batch_first=True)
    at = rl.randint(0, 10, (16, 20))
    table = rl.randn(10, width).to(dtype)
    grads = []
    for net, like in ((own, dtype), (exact, rl.float64)):
        weight = table.to(like, copy=True).requires_grad_()
        out = net(rl.nn.functional.embedding(at, weight))[0]
        out.backward(rl.linspace(-1, 2, out.numel()).reshape(out.shape).to(like))
        grads.append([out.detach(), weight.grad, *(p.grad for p in net.parameters())])
    close(*grads, dtype, 8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(40, 12, 64, 64), (3, 12, 300, 300), (1, 40, 512, 512)])
def test_threads_do_not_change_a_bit(sizes, kind):
    rows, steps, inputs, hidden = sizes
    rl.manual_seed(3)
    net, x = layer(kind, inputs, hidden).bfloat16(), rl.randn(steps, rows, inputs).bfloat16()
    found = []
    before = rl.get_num_threads()
    for threads in (1, 2, 3):
        rl.set_num_threads(threads)
        net.zero_grad()
        found.append([t.clone() for t in results_of(net, x, [], rl.bfloat16)])
    rl.set_num_threads(before)
    for other in found[1:]:
        assert all(rl.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_result_is_the_state(kind):
    rl.manual_seed(4)
    net = layer(kind, 5, 19).bfloat16()
    out, states = net(rl.randn(6, 3, 5).bfloat16())
    assert rl.equal(out[-1], (states[0] if kind == "LSTM" else states)[0])


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_gradients_of_gradients(kind, dtype):
    rl.manual_seed(5)
    own, exact = both(kind, dtype, 4, 6)
    x = rl.randn(3, 2, 4).to(dtype)
    found = []
    for net, like in ((own, dtype), (exact, rl.float64)):
        given = x.to(like, copy=True).requires_grad_()
        (first,) = rl.autograd.grad(net(given)[0].square().sum(), given, create_graph=True)
        assert first.dtype == like
        (second,) = rl.autograd.grad(first.square().sum(), given)
        found.append([first.detach(), second])
    close(*found, dtype, 16)


@pytest.mark.parametrize("dtype", REDUCED)
def test_what_is_not_a_number_stays_in_its_row(dtype):
    net = rl.nn.LSTM(3, 20).to(dtype)
    x = rl.randn(4, 3, 3).to(dtype)
    x[1, 1] = float("nan")
    out = net(x)[0]
    assert out[1:, 1].isnan().all() and not out[0].isnan().any() and not out[:, [0, 2]].isnan().any()
