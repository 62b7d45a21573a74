"""Recurrent layers that multiply by Strassen-Winograd: exact enough, and rows stay by themselves.

It begins with batches of 32 and hidden sizes of 128; without AVX-512 the ordinary GEMM runs."""

import pytest

import rushlight as rl

KINDS = {"LSTM": {}, "GRU": {}, "tanh": {}, "relu": {"nonlinearity": "relu"}}
ROWS, STEPS, HIDDEN = 32, 40, 128


def make(kind, inputs=24, hidden=HIDDEN, **options):
    rl.manual_seed(1)
    name = kind if kind.isupper() else "RNN"
    return getattr(rl.nn, name)(inputs, hidden, **KINDS[kind], **options)


def doubled(net):
    copy = type(net)(
        net.input_size, net.hidden_size, bidirectional=net.bidirectional, batch_first=net.batch_first
    )
    if hasattr(net, "nonlinearity"):
        copy = type(net)(
            net.input_size, net.hidden_size, bidirectional=net.bidirectional, nonlinearity=net.nonlinearity
        )
    copy = copy.double()
    copy.load_state_dict(net.state_dict())
    return copy


def results(net, x, weigh):
    """The output and all gradients, of a weighed sum."""
    net.zero_grad()
    x = x.detach().requires_grad_()
    out = net(x)[0]
    (out * weigh.to(out.dtype)).sum().backward()
    return [out.detach(), x.grad, *(p.grad for p in net.parameters())]


def error(ours, exact):
    return ((ours.double() - exact).abs().max() / exact.abs().max()).item()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [32, 64, 96])
def test_near_the_exact_result(kind, rows):
    net = make(kind, bidirectional=True)
    x, weigh = rl.randn(STEPS, rows, 24), rl.randn(STEPS, rows, 2 * HIDDEN)
    for ours, exact in zip(results(net, x, weigh), results(doubled(net), x.double(), weigh)):
        assert error(ours, exact) < 4e-6


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_for_every_number_of_threads(kind):
    net, before = make(kind, hidden=256, bidirectional=True), rl.get_num_threads()
    x, weigh = rl.randn(STEPS, 2 * ROWS, 24), rl.randn(STEPS, 2 * ROWS, 512)
    try:
        found = []
        for threads in (1, 2, 3, 4):
            rl.set_num_threads(threads)
            found.append(results(net, x, weigh))
    finally:
        rl.set_num_threads(before)
    for other in found[1:]:
        assert all(rl.equal(a, b) for a, b in zip(found[0], other))


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_has_no_gradient_by_another(kind):
    net = make(kind)
    x = rl.randn(STEPS, ROWS, 24, requires_grad=True)
    net(x)[0][:, 5].sum().backward()
    others = [r for r in range(ROWS) if r != 5]
    assert x.grad[:, others].count_nonzero() == 0
    assert x.grad[:, 5].count_nonzero() > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_bad_numbers_stay_in_their_sample(kind, bad):
    net = make(kind)
    x, others = rl.randn(STEPS, ROWS, 24), [r for r in range(ROWS) if r != 9]
    expected = net(x)[0][:, others].detach()
    x[3, 9] = bad
    rl.testing.assert_close(net(x)[0][:, others].detach(), expected)


@pytest.mark.parametrize("small", [1e-3, 1e-12])
def test_small_gradients_are_as_exact_as_others(small):
    net = make("LSTM")
    x, weigh = rl.randn(STEPS, ROWS, 24), rl.randn(STEPS, ROWS, HIDDEN)
    weigh[:, ::7] *= small
    ours, exact = results(net, x, weigh)[1], results(doubled(net), x.double(), weigh)[1]
    for row in range(ROWS):
        assert error(ours[:, row], exact[:, row]) < 5e-5


def test_units_without_weights_stay_at_zero():
    net = make("LSTM")
    with rl.no_grad():
        for p in net.parameters():
            p.view(4, HIDDEN, -1)[:, 11] = 0
    weigh = rl.randn(STEPS, ROWS, HIDDEN)
    out, _, _, d_hh, *_ = results(net, rl.randn(STEPS, ROWS, 24), weigh)
    assert out[..., 11].count_nonzero() == 0
    assert d_hh[:, 11].count_nonzero() == 0


def test_large_and_infinite_weights():
    x = rl.randn(STEPS, ROWS, 24)
    for value in (1e4, 3e38, float("inf")):
        net = make("LSTM")
        with rl.no_grad():
            net.weight_hh_l0[7, 3] = value
        rl.testing.assert_close(
            net(x)[0], doubled(net)(x.double())[0].float(), equal_nan=True, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "tanh"])
def test_packed_sequences_of_many_lengths(kind):
    net, lengths = make(kind), [STEPS - r for r in range(ROWS)]
    x = rl.randn(STEPS, ROWS, 24)
    pack = rl.nn.utils.rnn.pack_padded_sequence

    def run(net, x):
        net.zero_grad()
        x = x.detach().requires_grad_()
        out, _ = net(pack(x, lengths))
        out.data.pow(2).sum().backward()
        return [out.data.detach(), x.grad, *(p.grad for p in net.parameters())]

    for ours, exact in zip(run(net, x), run(doubled(net), x.double())):
        assert error(ours, exact) < 4e-6


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("state", [False, True])
def test_words_summed_by_the_way(batch_first, state):
    """Gradients of a table of words, of weights and of biases, from one pass over the gates' gradients."""
    table = rl.nn.Embedding(30, 24)
    words = rl.randint(0, 30, (ROWS, STEPS) if batch_first else (STEPS, ROWS))
    net = make("LSTM", bidirectional=True, batch_first=batch_first)
    states = rl.randn(2, 2, ROWS, HIDDEN) if state else rl.zeros(2, 2, ROWS, HIDDEN)

    def run(net, table):
        net.zero_grad()
        table.zero_grad()
        h, c = states.to(table.weight.dtype)
        out, _ = net(table(words), (h, c))
        (out * out.cos()).sum().backward()
        return [table.weight.grad, *(p.grad for p in net.parameters())]

    exact_table = rl.nn.Embedding(30, 24).double()
    exact_table.load_state_dict(table.state_dict())
    for ours, exact in zip(run(net, table), run(doubled(net), exact_table)):
        assert error(ours, exact) < 4e-6


@pytest.fixture
def restored():
    """Leaves the choice as it was."""
    with rl.backends.cpu.force_recurrent_gemm(""):
        yield


HAS_STRASSEN = rl.backends.cpu.get_cpu_capability() in ("AVX512", "AMX")


def test_the_multiplication_can_be_asked_for_and_forced(restored):
    ask = rl.backends.cpu.recurrent_gemm
    fast = "strassen" if HAS_STRASSEN else "direct"
    assert ask(256, 32, 40) == fast
    assert ask(256, 31, 40) == ask(64, 32, 40) == ask(256, 32, 40, dtype=rl.float64) == "direct"
    with rl.backends.cpu.force_recurrent_gemm("direct"):
        assert ask(256, 32, 40) == "direct"
        with rl.backends.cpu.force_recurrent_gemm("strassen"):
            assert ask(256, 32, 2) == ask(64, 32, 1) == fast
            assert ask(256, 31, 40) == "direct"
        assert ask(256, 32, 40) == "direct"
    assert ask(256, 32, 40) == fast
    with (
        pytest.raises(ValueError, match="'direct' or 'strassen', got 'winograd'"),
        rl.backends.cpu.force_recurrent_gemm("winograd"),
    ):
        pass
    with pytest.raises(ValueError, match="Unrecognized RNN mode"):
        ask(256, 32, 40, "lstm")
    with pytest.raises(ValueError, match="expected sizes above 0"):
        ask(256, 0, 40)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [2, 7, 40])
def test_both_multiplications_are_near_the_exact_result(kind, steps, restored):
    net = make(kind, bidirectional=True)
    x, weigh = rl.randn(steps, 64, 24), rl.randn(steps, 64, 2 * HIDDEN)
    found = {}
    for name in ("direct", "strassen"):
        with rl.backends.cpu.force_recurrent_gemm(name):
            found[name] = results(net, x, weigh)
    exact = results(doubled(net), x.double(), weigh)
    for direct, strassen, true in zip(found["direct"], found["strassen"], exact):
        assert error(direct, true) < 2e-6
        assert error(strassen, true) < 4e-6
    same = all(a.equal(b) for a, b in zip(found["direct"], found["strassen"]))
    assert same == (not HAS_STRASSEN)  # two algorithms round differently
