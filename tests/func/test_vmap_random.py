"""Random functions under vmap: refused, the same for all samples, or different; the numbers are torch's."""

import pytest

import rushlight as rl
from rushlight.func import vmap
from rushlight.nn import functional as F


def test_randomness():
    x = rl.ones(4, 100)
    for f in (
        lambda v: v + rl.randn(100),
        lambda v: F.dropout(v),
        lambda v: rl.rand_like(v),
    ):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            vmap(f)(x)
        different = vmap(f, randomness="different")(x)
        assert different.shape == (4, 100) and not rl.equal(different[0], different[1])
        same = vmap(f, randomness="same")(x)
        assert rl.equal(same[0], same[1]) and rl.equal(same[0], same[3]) and same.std() > 0
    assert vmap(lambda v: F.dropout(v, training=False))(x).shape == (4, 100)


def test_draws_by_batched_probabilities_cannot_be_the_same():
    x = rl.full((4, 100), 0.5)
    assert vmap(rl.bernoulli, randomness="different")(x).std() > 0
    with pytest.raises(
        RuntimeError, match="does not currently support same randomness with a batched tensor input"
    ):
        vmap(rl.bernoulli, randomness="same")(x)


def test_dropout_that_drops_nothing_is_not_random():
    x = rl.rand(2, 3)
    assert rl.equal(vmap(lambda v: F.dropout(v, 0.0))(x), x)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda v: rl.zeros(3).normal_(), randomness="different")(x)


DRAWS = {
    "rand": lambda m, a: m.rand(20),
    "randn": lambda m, a: m.randn(20),
    "few": lambda m, a: m.randn(3),
    "size": lambda m, a: m.randn((4, 5)),
    "randint": lambda m, a: m.randint(0, 100, (5,)),
    "randperm": lambda m, a: m.randperm(6),
    "dropout": lambda m, a: m.nn.functional.dropout(a),
    "rand_like": lambda m, a: m.rand_like(a),
    "randn_like": lambda m, a: m.randn_like(a),
    "bernoulli": lambda m, a: m.bernoulli(a),
    "multinomial": lambda m, a: m.multinomial(a, 3),
    "normal": lambda m, a: m.normal(a, 1.0),
    "poisson": lambda m, a: m.poisson(a * 9),
    "normal_": lambda m, a: a.clone().normal_(),
    "uniform_": lambda m, a: a.clone().uniform_(),
    "exponential_": lambda m, a: a.clone().exponential_(),
    "gumbel": lambda m, a: m.nn.functional.gumbel_softmax(a),
    "nested": lambda m, a: m.func.vmap(lambda b: m.randn_like(b), randomness="different")(a),
    "nested same": lambda m, a: m.func.vmap(lambda b: m.randn(2), randomness="same")(a),
}


@pytest.mark.parametrize("randomness", ["different", "same"])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_torchs(name, randomness):
    torch = pytest.importorskip("torch")
    if randomness == "same" and name in ("bernoulli", "multinomial", "normal", "poisson"):
        pytest.skip("torch draws these for each sample only")
    found = []
    for m in (rl, torch):
        m.manual_seed(0)
        x = m.linspace(0.1, 0.9, 80).reshape(4, 20)
        found.append(m.func.vmap(lambda a, m=m: DRAWS[name](m, a), randomness=randomness)(x).double())
    ours, theirs = found
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert rl.allclose(ours, rl.tensor(theirs.tolist(), dtype=rl.float64), atol=1e-5)


def test_a_probability_per_sample_is_broadcast_to_its_sample():
    p = rl.tensor([0.0, 1.0, 0.0])
    for own in (p, p[:, None]):
        drawn = rl.vmap(lambda t, p: t.bernoulli_(p), randomness="different")(rl.ones(3, 2), own)
        assert drawn.tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
