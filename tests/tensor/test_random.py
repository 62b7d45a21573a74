"""Random numbers: recorded streams, states, arguments that must be refused."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import rushlight as rl


def values_of(t):
    return t.tolist()


# Written down from torch 2.13 on the CPU, one after the other from one seed.
RECORDED = [
    (lambda: rl.rand(3), [0.8822692632675171, 0.9150039553642273, 0.38286375999450684]),
    (
        lambda: rl.randn(5),
        [
            -0.829319179058075,
            -1.6137069463729858,
            -0.21470452845096588,
            0.29893550276756287,
            -0.01069642137736082,
        ],
    ),
    (
        lambda: rl.randn(20)[::6],
        [0.5201311707496643, -0.42451897263526917, -0.6011420488357544, 0.8962683081626892],
    ),
    (lambda: rl.randn(17, dtype=rl.float64)[-2:], [1.4389434378859556, -0.45946380892463984]),
    (lambda: rl.rand(2, dtype=rl.float16), [0.060028076171875, 0.28466796875]),
    (lambda: rl.randn(2, dtype=rl.bfloat16), [-1.25, -0.9453125]),
    (
        lambda: rl.randn(2, dtype=rl.complex64),
        [(-0.5202059745788574 - 0.2572590112686157j), (1.0156817436218262 + 0.2647395133972168j)],
    ),
    (lambda: rl.randint(0, 100, (6,)), [68, 36, 20, 6, 8, 76]),
    (lambda: rl.randint(-(2**40), 2**40, (3,)), [382195769158, -1061835123369, -548902336533]),
    (lambda: rl.randperm(10), [9, 5, 8, 1, 6, 2, 0, 3, 7, 4]),
    (lambda: rl.zeros(8).bernoulli_(0.3), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
    (lambda: rl.bernoulli(rl.tensor([0.1, 0.5, 0.9])), [0.0, 1.0, 1.0]),
    (lambda: rl.multinomial(rl.tensor([0.1, 0.2, 0.7]), 2), [2, 0]),
    (lambda: rl.multinomial(rl.tensor([0.1, 0.2, 0.7]), 5, True), [2, 1, 0, 2, 1]),
    (lambda: rl.zeros(2).exponential_(), [0.3525616228580475, 0.5584833025932312]),
    (lambda: rl.zeros(2).cauchy_(), [1.4517111778259277, -0.19859091937541962]),
    (lambda: rl.zeros(2).log_normal_(), [0.8745227456092834, 39.72756576538086]),
    (lambda: rl.zeros(4).geometric_(0.2), [10.0, 3.0, 3.0, 3.0]),
    (lambda: rl.zeros(3, dtype=rl.int16).random_(), [22403, 18141, 14820]),
    (
        lambda: rl.normal(rl.tensor([1.0, 2.0]), rl.tensor([0.5, 3.0])),
        [1.5161492824554443, -1.18430495262146],
    ),
    (lambda: rl.poisson(rl.tensor([1.0, 20.0, 0.0])), [1.0, 22.0, 0.0]),
    (lambda: rl.binomial(rl.tensor([10.0, 100.0]), rl.tensor([0.5, 0.3])), [2.0, 26.0]),
    (lambda: rl._standard_gamma(rl.tensor([0.5, 3.0])), [0.0052515133284032345, 5.312031269073486]),
    (lambda: rl.dropout(rl.ones(8), 0.5, True), [2.0, 2.0, 2.0, 0.0, 0.0, 2.0, 0.0, 2.0]),
    (lambda: rl.native_dropout(rl.ones(4), 0.5, True)[1], [True, False, False, True]),
    (
        lambda: rl.alpha_dropout(rl.ones(3), 0.5, True),
        [1.6655988693237305, 1.6655988693237305, -0.7791939377784729],
    ),
    (lambda: rl.rand(1), [0.8103999495506287]),
]


def test_recorded_streams():
    rl.manual_seed(42)
    for i, (call, expected) in enumerate(RECORDED):
        assert values_of(call()) == expected, i


def test_states_round_trip():
    g = rl.Generator().manual_seed(2**40 + 5)
    rl.randn(3, generator=g)  # leaves the second number of a pair behind
    state = g.get_state()
    assert state.dtype == rl.uint8 and state.shape == (5056,)
    first = values_of(rl.randn(5, generator=g))
    other = rl.Generator()
    assert other.set_state(state) is other
    assert values_of(rl.randn(5, generator=other)) == first
    assert other.initial_seed() == 2**40 + 5
    g.set_state(state)
    for twin in (g.clone_state(), copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert values_of(rl.randn(5, generator=twin)) == first


def test_default_generator():
    assert rl.manual_seed(3) is rl.default_generator
    assert rl.initial_seed() == 3
    state = rl.get_rng_state()
    with rl.random.fork_rng():
        inside = values_of(rl.rand(4))
    assert values_of(rl.rand(4)) == inside
    rl.set_rng_state(state)
    assert values_of(rl.rand(4)) == inside
    assert rl.seed() == rl.initial_seed()
    assert rl.Generator().initial_seed() == 67280421310721
    rl.manual_seed(-1)
    assert rl.initial_seed() == 2**64 - 1


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 1.5, "a", None])
def test_bad_seeds(seed):
    with pytest.raises((ValueError, RuntimeError)):
        rl.Generator().manual_seed(seed)


def test_bad_states():
    g = rl.Generator().manual_seed(1)
    good = g.get_state()
    before = values_of(rl.rand(3, generator=g.clone_state()))
    with pytest.raises(RuntimeError, match="5056"):
        g.set_state(good[:5048].clone())
    with pytest.raises(TypeError):
        g.set_state(good.float())
    with pytest.raises(TypeError):
        g.set_state([1, 2])
    # `left` and `next` that would read past the words
    for at, value in ((8, 200), (12, 0), (16, 77)):
        bad = good.clone()
        bad[at] = value
        if at == 16:
            bad[8], bad[9] = 112, 2  # left = 624 with next = 77
        with pytest.raises(RuntimeError, match="Mersenne"):
            g.set_state(bad)
    assert values_of(rl.rand(3, generator=g)) == before


def test_fills_follow_memory_order():
    rl.manual_seed(5)
    plain = rl.rand(4, 6)
    rl.manual_seed(5)
    transposed = rl.zeros(4, 6).t().uniform_()
    assert values_of(transposed.t()) == values_of(plain)
    rl.manual_seed(5)
    column = rl.zeros(24, 3)[:, 1].uniform_()
    assert values_of(column) == values_of(plain.flatten())


def test_like_factories_keep_layout_and_type():
    x = rl.zeros(2, 3, dtype=rl.float64).t()
    for f in (rl.rand_like, rl.randn_like):
        y = f(x)
        assert y.dtype == rl.float64 and y.stride() == (1, 3)
    assert rl.randint_like(x, 3, 5).dtype == rl.float64
    assert rl.rand_like(x, dtype=rl.float32).dtype == rl.float32


def test_factory_keywords():
    g = rl.Generator().manual_seed(1)
    assert rl.rand((2, 3), generator=g).shape == (2, 3)
    assert rl.rand(()).shape == ()
    assert rl.rand(0, 3).numel() == 0
    assert rl.rand(2, requires_grad=True).requires_grad
    assert rl.randint(low=1, high=3, size=[2]).dtype == rl.int64
    assert rl.randint(5, (2,), dtype=rl.float32).dtype == rl.float32
    assert rl.rand(2, 2, device="meta").device.type == "meta"
    assert rl.randn(3, dtype=rl.complex64).dtype == rl.complex64
    out = rl.zeros(2, dtype=rl.float64)
    assert rl.rand(2, out=out) is out and out.abs().sum() > 0
    state = rl.get_rng_state()
    rl.rand(3, device="meta")
    assert values_of(rl.get_rng_state()) == values_of(state)


def test_gradients_stop_at_samples():
    x = rl.full((3,), 0.5, requires_grad=True)
    for y in (rl.bernoulli(x), rl.normal(x, 1.0), rl.poisson(x), (x * 1).normal_(), (x * 1).uniform_()):
        assert y.requires_grad
        (grad,) = rl.autograd.grad(y.sum(), x)
        assert values_of(grad) == [0, 0, 0]
    with pytest.raises(RuntimeError, match="leaf"):
        x.normal_()
    with rl.no_grad():
        x.normal_()
    y = rl._standard_gamma(rl.full((3,), 2.0, requires_grad=True))
    assert (rl.autograd.grad(y.sum(), y.grad_fn.next_functions[0][0].variable)[0] > 0).all()


def test_dropout():
    x = rl.ones(1000, requires_grad=True)
    y = rl.dropout(x, 0.25, True)
    assert sorted(set(values_of(y.detach()))) == [0.0, pytest.approx(1 / 0.75)]
    (grad,) = rl.autograd.grad(y.sum(), x)
    assert values_of(grad) == values_of(y.detach())
    assert rl.dropout(x, 0.25, False) is x
    assert values_of(rl.dropout(x, 1.0, True).sum()) == 0
    version = x._version
    assert rl.dropout_(x, 0.25, False) is x and x._version == version
    z = rl.ones(10)
    assert rl.dropout_(z, 0.5, True) is z and set(values_of(z)) <= {0.0, 2.0}
    kept, mask = rl.native_dropout(rl.ones(100), 0.5, True)
    assert values_of(kept) == [2.0 * m for m in values_of(mask)]
    channels = rl.feature_dropout(rl.ones(4, 5, 3, 3), 0.5, True).flatten(2)
    assert (channels == channels[:, :, :1]).all()
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            rl.dropout(x, p, True)


REFUSED = [
    lambda: rl.rand(3, dtype=rl.int64),
    lambda: rl.randn(3, dtype=rl.bool),
    lambda: rl.rand(-1),
    lambda: rl.rand(2, layout=rl.sparse_coo),
    lambda: rl.rand(2, generator=3),
    lambda: rl.rand(2, out=rl.zeros(2, dtype=rl.float64), dtype=rl.float32),
    lambda: rl.zeros(3).uniform_(2, 1),
    lambda: rl.zeros(3).uniform_(float("nan"), 1),
    lambda: rl.zeros(3).uniform_(0, float("inf")),
    lambda: rl.zeros(3).uniform_(-3e38, 3e38),
    lambda: rl.zeros(3, dtype=rl.float16).uniform_(0, 1e6),
    lambda: rl.zeros(3).normal_(0, -1),
    lambda: rl.zeros(3).normal_(0, float("nan")),
    lambda: rl.normal(rl.zeros(3), rl.tensor([1.0, -1.0, 1.0])),
    lambda: rl.zeros(3).log_normal_(0, 0),
    lambda: rl.zeros(3).exponential_(0),
    lambda: rl.zeros(3, dtype=rl.int64).exponential_(),
    lambda: rl.zeros(3).cauchy_(0, 0),
    lambda: rl.zeros(3).geometric_(1),
    lambda: rl.zeros(3).geometric_(float("nan")),
    lambda: rl.zeros(3).bernoulli_(2),
    lambda: rl.zeros(3).bernoulli_(rl.tensor([0.5, 2.0, 0.1])),
    lambda: rl.zeros(3).bernoulli_(rl.ones(2)),
    lambda: rl.bernoulli(rl.tensor([float("nan")])),
    lambda: rl.zeros(3, dtype=rl.int8).random_(0, 1000),
    lambda: rl.zeros(3).random_(5, 5),
    lambda: rl.zeros(3, dtype=rl.complex64).random_(3),
    lambda: rl.randint(5, 5, (2,)),
    lambda: rl.randint(10.5, (2,)),
    lambda: rl.randperm(-1),
    lambda: rl.randperm(300, dtype=rl.uint8),
    lambda: rl.randperm(3, dtype=rl.bool),
    lambda: rl.multinomial(rl.ones(2, 3, 4), 1),
    lambda: rl.multinomial(rl.ones(3, dtype=rl.int64), 1),
    lambda: rl.multinomial(rl.ones(3), 0),
    lambda: rl.multinomial(rl.ones(3), 4),
    lambda: rl.multinomial(rl.zeros(3), 1),
    lambda: rl.multinomial(rl.zeros(3), 2, True),
    lambda: rl.multinomial(rl.ones(2, 0), 1, True),
    lambda: rl.multinomial(rl.tensor([1.0, -1.0]), 1),
    lambda: rl.multinomial(rl.tensor([1.0, float("nan")]), 2, True),
    lambda: rl.multinomial(rl.tensor([1.0, float("inf")]), 2, True),
    lambda: rl.poisson(rl.tensor([-1.0])),
    lambda: rl.poisson(rl.tensor([float("nan")])),
    lambda: rl.poisson(rl.tensor([1])),
    lambda: rl.binomial(rl.tensor([1.0]), rl.tensor([1.0], dtype=rl.float64)),
    lambda: rl.zeros(3).expand(2, 3).uniform_(),
    lambda: rl.Generator("cuda"),
]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_refused(call):
    with pytest.raises((RuntimeError, TypeError, ValueError, NotImplementedError)):
        call()


def test_hostile_values_end():
    """Values outside a distribution's domain give NaN or infinity; they never hang."""
    inf, nan = float("inf"), float("nan")
    assert rl._standard_gamma(rl.tensor([nan, -1.0])).isnan().all()
    assert values_of(rl._standard_gamma(rl.tensor([inf]))) == [inf]
    assert values_of(rl.poisson(rl.tensor([inf]))) == [inf]
    rl.binomial(rl.tensor([nan, inf, 5.0, -3.0]), rl.tensor([0.5, 0.5, nan, 0.5]))


def test_random_integers_stay_in_range():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = rl.zeros(2000, dtype=rl.float16).random_(0, 4096)
        assert x.max() < 4096
        y = rl.zeros(2000).random_(2**24 - 1, 2**24 + 3)
        assert y.max() < 2**24 + 3
    with pytest.warns(UserWarning, match="2\\^24"):
        rl.zeros(3).random_(2**30)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 1024, 1025, 1026, 5000, 70001])
def test_permutations_are_fisher_and_yates_shuffle_of_the_draws(n):
    draws = (
        np.random.RandomState(n).randint(0, 2**32, max(n - 1, 0), dtype=np.uint32).tolist()
    )  # the same twister
    expected = list(range(n))
    for i, draw in enumerate(draws):
        j = i + draw % (n - i)
        expected[i], expected[j] = expected[j], expected[i]
    for dtype in (rl.int64, rl.int32, rl.float64):
        rl.manual_seed(n)
        assert rl.randperm(n, dtype=dtype).tolist() == expected
    strided = rl.zeros(2 * n, dtype=rl.int64)[::2]
    rl.manual_seed(n)
    rl.randperm(n, out=strided)
    assert strided.tolist() == expected


def test_few_samples_of_many_weights_are_those_of_the_whole_distribution():
    weights = rl.rand(5000, dtype=rl.float64, generator=rl.Generator().manual_seed(3))
    sums = weights.cumsum(0) / weights.sum()
    rl.manual_seed(5)
    few = rl.multinomial(weights, 7, replacement=True)
    rl.manual_seed(5)
    many = rl.multinomial(weights, 700, replacement=True)
    assert few.tolist() == many[:7].tolist()
    rl.manual_seed(5)
    drawn = rl.rand(7, dtype=rl.float64)
    assert few.tolist() == rl.searchsorted(sums, drawn).tolist()
    for bad in (-1.0, float("inf"), float("nan")):
        weights[4000] = bad
        with pytest.raises(RuntimeError, match="invalid multinomial distribution"):
            rl.multinomial(weights, 7, replacement=True)
