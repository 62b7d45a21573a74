"""Distributions against torch.distributions: the same draws for a seed, the same numbers, the same "
"refusals."""

import math
import pickle

import pytest

import rushlight as rl
from rushlight import distributions as ours

oracle = pytest.importorskip("torch")
theirs = oracle.distributions

pytestmark = pytest.mark.filterwarnings("ignore:Singular sample")  # torch says so of each Wishart draw
COV = [[2.0, 0.5], [0.5, 1.0]]

# name -> function of (distributions module, tensor maker): an instance
CASES = {
    "Bernoulli": lambda d, t: d.Bernoulli(t([0.3, 0.6, 0.9])),
    "Bernoulli logits": lambda d, t: d.Bernoulli(logits=t([-1.0, 2.0])),
    "Bernoulli number": lambda d, t: d.Bernoulli(0.25),
    "Beta": lambda d, t: d.Beta(t([0.5, 2.0]), t([0.7, 3.0])),
    "Beta number": lambda d, t: d.Beta(2.0, 3.0),
    "Binomial": lambda d, t: d.Binomial(10, t([0.2, 0.8])),
    "Binomial logits": lambda d, t: d.Binomial(4, logits=t([0.0, 0.8])),
    "Categorical": lambda d, t: d.Categorical(t([[1.0, 2.0, 3.0], [0.2, 0.2, 0.6]])),
    "Categorical logits": lambda d, t: d.Categorical(logits=t([1.0, -2.0, 3.0])),
    "Cauchy": lambda d, t: d.Cauchy(t([0.0, 1.0]), t([1.0, 2.0])),
    "Chi2": lambda d, t: d.Chi2(t([1.0, 5.0])),
    "ContinuousBernoulli": lambda d, t: d.ContinuousBernoulli(t([0.2, 0.5, 0.7])),
    "ContinuousBernoulli logits": lambda d, t: d.ContinuousBernoulli(logits=t([0.2, -3.0])),
    "Dirichlet": lambda d, t: d.Dirichlet(t([[0.5, 2.0, 3.0], [1.0, 1.5, 4.0]])),
    "Exponential": lambda d, t: d.Exponential(t([0.5, 2.0])),
    "FisherSnedecor": lambda d, t: d.FisherSnedecor(t([3.0, 10.0]), t([5.0, 8.0])),
    "Gamma": lambda d, t: d.Gamma(t([0.5, 3.0]), t([1.0, 2.0])),
    "GeneralizedPareto": lambda d, t: d.GeneralizedPareto(t([0.0, 1.0, 0.0]), 2.0, t([0.3, -0.4, 0.0])),
    "Geometric": lambda d, t: d.Geometric(t([0.2, 0.9])),
    "Geometric logits": lambda d, t: d.Geometric(logits=t([0.2, -0.9])),
    "Gumbel": lambda d, t: d.Gumbel(t([0.0, 1.0]), t([1.0, 2.0])),
    "HalfCauchy": lambda d, t: d.HalfCauchy(t([1.0, 2.0])),
    "HalfNormal": lambda d, t: d.HalfNormal(t([1.0, 2.0])),
    "Independent": lambda d, t: d.Independent(d.Normal(t([[0.0, 1.0]]), t([[1.0, 2.0]])), 1),
    "InverseGamma": lambda d, t: d.InverseGamma(t([0.5, 3.0]), t([1.0, 2.0])),
    "Kumaraswamy": lambda d, t: d.Kumaraswamy(t([0.7, 3.0]), t([0.8, 2.0])),
    "LKJCholesky": lambda d, t: d.LKJCholesky(3, t([0.5, 2.0])),
    "Laplace": lambda d, t: d.Laplace(t([0.0, 1.0]), t([1.0, 2.0])),
    "LogNormal": lambda d, t: d.LogNormal(t([0.0, 1.0]), t([1.0, 0.5])),
    "LogisticNormal": lambda d, t: d.LogisticNormal(t([0.0, 1.0, -1.0]), t([1.0, 0.5, 1.0])),
    "LowRank": lambda d, t: d.LowRankMultivariateNormal(
        t([1.0, 0.0, 2.0]), t([[1.0], [0.5], [0.0]]), t([1.0, 2.0, 0.5])
    ),
    "Mixture": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([0.3, 0.7])), d.Normal(t([0.0, 5.0]), t([1.0, 2.0]))
    ),
    "Mixture vectors": lambda d, t: d.MixtureSameFamily(
        d.Categorical(t([[0.3, 0.7], [0.5, 0.5]])),
        d.Independent(d.Normal(t([[[0.0, 1.0], [5.0, 2.0]]] * 2), 1.0), 1),
    ),
    "Multinomial": lambda d, t: d.Multinomial(5, t([0.2, 0.3, 0.5])),
    "Multinomial batch": lambda d, t: d.Multinomial(4, logits=t([[0.2, 0.3, 0.5], [1.0, 2.0, 0.0]])),
    "MVN": lambda d, t: d.MultivariateNormal(t([1.0, -1.0]), t(COV)),
    "MVN precision": lambda d, t: d.MultivariateNormal(t([1.0, -1.0]), precision_matrix=t(COV)),
    "MVN tril": lambda d, t: d.MultivariateNormal(
        t([[1.0, -1.0], [0.0, 0.0]]), scale_tril=t([[1.0, 0.0], [0.5, 2.0]])
    ),
    "NegativeBinomial": lambda d, t: d.NegativeBinomial(t([3.0, 5.5]), t([0.2, 0.6])),
    "Normal": lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, 2.0])),
    "Normal number": lambda d, t: d.Normal(1.0, 2.0),
    "OneHotCategorical": lambda d, t: d.OneHotCategorical(t([[0.2, 0.3, 0.5], [0.8, 0.1, 0.1]])),
    "StraightThrough": lambda d, t: d.OneHotCategoricalStraightThrough(t([0.2, 0.3, 0.5])),
    "Pareto": lambda d, t: d.Pareto(t([1.0, 2.0]), t([0.5, 3.0])),
    "Poisson": lambda d, t: d.Poisson(t([0.5, 30.0])),
    "RelaxedBernoulli": lambda d, t: d.RelaxedBernoulli(t(0.7), t([0.3, 0.8])),
    "RelaxedOneHot": lambda d, t: d.RelaxedOneHotCategorical(t(0.7), t([0.3, 0.2, 0.5])),
    "StudentT": lambda d, t: d.StudentT(t([0.5, 1.5, 5.0]), t([0.0, 1.0, 2.0]), 2.0),
    "Transformed": lambda d, t: d.TransformedDistribution(
        d.Normal(t([0.0, 1.0]), 1.0), [d.ExpTransform(), d.AffineTransform(1.0, -2.0)]
    ),
    "Uniform": lambda d, t: d.Uniform(t([0.0, -1.0]), t([1.0, 3.0])),
    "VonMises": lambda d, t: d.VonMises(t([0.0, 1.0]), t([0.5, 10.0])),
    "Weibull": lambda d, t: d.Weibull(t([1.0, 2.0]), t([0.5, 3.0])),
    "Wishart": lambda d, t: d.Wishart(t(5.0), t(COV)),
    "Wishart batch": lambda d, t: d.Wishart(t([5.0, 3.0]), scale_tril=t([[1.0, 0.0], [0.5, 2.0]])),
}


def pair(name):
    return CASES[name](ours, rl.tensor), CASES[name](theirs, oracle.tensor)


def outcome(function):
    """A value as (shape, flat values), or the type of the exception."""
    try:
        value = function()
    except (NotImplementedError, RuntimeError, AttributeError, ValueError) as error:
        return type(error).__name__
    return list(value.shape), value.detach().double().reshape(-1).tolist()


def agree(mine, expected, rtol=2e-5, atol=2e-6):
    if isinstance(mine, str) or isinstance(expected, str):
        return mine == expected
    if mine[0] != expected[0]:
        return False
    return all(
        a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= atol + rtol * abs(b)
        for a, b in zip(mine[1], expected[1], strict=True)
    )


@pytest.mark.parametrize("name", CASES)
def test_draws(name):
    for method in ("sample", "rsample"):
        for shape in ((), (3,), (2, 4)):
            results = []
            for lib, instance in zip((rl, oracle), pair(name), strict=True):
                lib.manual_seed(11)
                draw = getattr(instance, method)
                result = outcome(lambda draw=draw, lib=lib, shape=shape: draw(lib.Size(shape)))
                results.append((result, lib.rand(1).item()))
            assert agree(results[0][0], results[1][0]), (method, shape, results)
            assert results[0][1] == results[1][1], "the random stream advanced differently"


@pytest.mark.parametrize("name", CASES)
def test_quantities(name):
    mine, expected = pair(name)
    assert tuple(mine.batch_shape) == tuple(expected.batch_shape)
    assert tuple(mine.event_shape) == tuple(expected.event_shape)
    assert repr(mine) == repr(expected)
    assert mine.has_rsample == expected.has_rsample
    assert mine.has_enumerate_support == expected.has_enumerate_support
    assert repr(mine.support) == repr(expected.support)
    for attribute in ("mean", "variance", "stddev", "mode"):
        if name.startswith("Kumaraswamy") and attribute == "mode":
            continue  # torch's formula gives NaN where the mode exists
        a = outcome(lambda attribute=attribute: getattr(mine, attribute))
        b = outcome(lambda attribute=attribute: getattr(expected, attribute))
        assert agree(a, b), (attribute, a, b)
    for method in ("entropy", "perplexity", "enumerate_support"):
        a, b = outcome(getattr(mine, method)), outcome(getattr(expected, method))
        assert agree(a, b), (method, a, b)
    oracle.manual_seed(3)
    value = expected.sample((4,))
    same = rl.tensor(value.tolist(), dtype=getattr(rl, str(value.dtype).rpartition(".")[2]))
    for method in ("log_prob", "cdf"):
        a = outcome(lambda method=method: getattr(mine, method)(same))
        b = outcome(lambda method=method: getattr(expected, method)(value))
        assert agree(a, b, 1e-4, 1e-5), (method, a, b)
    quantiles = [[0.1] * max(1, len(expected.batch_shape) and expected.batch_shape[-1]), [0.6]]
    for q in quantiles:
        if len(expected.event_shape) == 0:
            a = outcome(lambda q=q: mine.icdf(rl.tensor(q)))
            b = outcome(lambda q=q: expected.icdf(oracle.tensor(q)))
            assert agree(a, b, 1e-4, 1e-5), ("icdf", a, b)


@pytest.mark.parametrize("name", CASES)
def test_expand(name):
    mine, expected = pair(name)
    shape = (3, 2) + tuple(expected.batch_shape)
    mine, expected = mine.expand(rl.Size(shape)), expected.expand(oracle.Size(shape))
    assert tuple(mine.batch_shape) == shape and tuple(mine.event_shape) == tuple(expected.event_shape)
    rl.manual_seed(5)
    a = mine.sample()
    oracle.manual_seed(5)
    b = expected.sample()
    assert agree(outcome(lambda: a), outcome(lambda: b))
    assert agree(outcome(lambda: mine.log_prob(a)), outcome(lambda: expected.log_prob(b)), 1e-4, 1e-5)
    assert agree(outcome(lambda: mine.mean), outcome(lambda: expected.mean))


@pytest.mark.parametrize("name", [n for n in CASES if "Wishart" not in n])  # torch's own fails there
def test_gradients_of_draws(name):
    """rsample's gradient by the parameters."""
    grads = []
    for lib, d in ((rl, ours), (oracle, theirs)):
        leaves = []

        def maker(data, lib=lib, leaves=leaves):
            t = lib.tensor(data)
            if t.dtype == lib.float32:
                t.requires_grad_()
                leaves.append(t)
            return t

        instance = CASES[name](d, maker)
        if not instance.has_rsample or not leaves:
            return
        lib.manual_seed(2)
        (instance.rsample((5,)) ** 2).sum().backward()
        grads.append([None if t.grad is None else t.grad for t in leaves])
    for a, b in zip(*grads, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert agree(outcome(lambda a=a: a), outcome(lambda b=b: b), 1e-3, 1e-4)


KL_CASES = {
    "Bernoulli": lambda d, t: d.Bernoulli(t([0.3, 0.6, 0.0])),
    "Bernoulli 2": lambda d, t: d.Bernoulli(t([0.5, 1.0, 0.4])),
    "Beta": lambda d, t: d.Beta(t([1.5, 2.0, 0.5]), t([0.7, 3.0, 1.0])),
    "Binomial": lambda d, t: d.Binomial(10, t([0.2, 0.8, 0.5])),
    "Binomial 2": lambda d, t: d.Binomial(t([10, 7, 3]), t([0.5, 0.6, 0.5])),
    "Categorical": lambda d, t: d.Categorical(t([[0.2, 0.3, 0.5]] * 3)),
    "Categorical 2": lambda d, t: d.Categorical(t([[0.4, 0.0, 0.6], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]])),
    "Cauchy": lambda d, t: d.Cauchy(t([0.0, 1.0, 2.0]), t([1.0, 2.0, 3.0])),
    "ContinuousBernoulli": lambda d, t: d.ContinuousBernoulli(t([0.2, 0.5, 0.7])),
    "Dirichlet": lambda d, t: d.Dirichlet(t([[0.5, 2.0, 3.0]] * 3)),
    "Dirichlet 2": lambda d, t: d.Dirichlet(t([[1.5, 1.0, 2.0]] * 3)),
    "Exponential": lambda d, t: d.Exponential(t([0.5, 2.0, 1.0])),
    "Gamma": lambda d, t: d.Gamma(t([0.5, 3.0, 1.0]), t([1.0, 2.0, 0.5])),
    "Chi2": lambda d, t: d.Chi2(t([0.5, 3.0, 1.0])),
    "Geometric": lambda d, t: d.Geometric(t([0.2, 0.9, 0.5])),
    "Gumbel": lambda d, t: d.Gumbel(t([0.0, 1.0, 0.5]), t([1.0, 2.0, 0.5])),
    "HalfNormal": lambda d, t: d.HalfNormal(t([1.0, 2.0, 3.0])),
    "Laplace": lambda d, t: d.Laplace(t([0.0, 1.0, 2.0]), t([1.0, 2.0, 0.5])),
    "LogNormal": lambda d, t: d.LogNormal(t([0.0, 1.0, 2.0]), t([1.0, 0.5, 2.0])),
    "LowRank": lambda d, t: d.LowRankMultivariateNormal(t([1.0, 0.0]), t([[1.0], [0.5]]), t([1.0, 2.0])),
    "MVN": lambda d, t: d.MultivariateNormal(t([1.0, -1.0]), t(COV)),
    "MVN batch": lambda d, t: d.MultivariateNormal(
        t([[0.0, -1.0]] * 3), scale_tril=t([[1.0, 0.0], [0.5, 2.0]])
    ),
    "Normal": lambda d, t: d.Normal(t([0.0, 1.0, 2.0]), t([1.0, 2.0, 0.5])),
    "OneHot": lambda d, t: d.OneHotCategorical(t([[0.2, 0.3, 0.5]] * 3)),
    "Pareto": lambda d, t: d.Pareto(t([1.0, 2.0, 0.5]), t([0.5, 3.0, 1.5])),
    "Poisson": lambda d, t: d.Poisson(t([0.5, 3.0, 7.0])),
    "Uniform": lambda d, t: d.Uniform(t([0.1, 0.5, 0.6]), t([0.9, 2.0, 0.7])),
    "Uniform wide": lambda d, t: d.Uniform(t([-1.0, 0.0, 0.0]), t([1.5, 2.5, 1.0])),
    "Independent": lambda d, t: d.Independent(d.Normal(t([[0.0, 1.0]]), t([[1.0, 2.0]])), 1),
}


@pytest.mark.parametrize("first", KL_CASES)
def test_divergences(first):
    for second in KL_CASES:
        a = outcome(
            lambda second=second: ours.kl_divergence(
                KL_CASES[first](ours, rl.tensor), KL_CASES[second](ours, rl.tensor)
            )
        )
        b = outcome(
            lambda second=second: theirs.kl_divergence(
                KL_CASES[first](theirs, oracle.tensor), KL_CASES[second](theirs, oracle.tensor)
            )
        )
        assert agree(a, b, 1e-4, 1e-5), (second, a, b)


def test_gradient_of_wishart_draws():
    df, cov = rl.tensor([5.0, 4.0], requires_grad=True), rl.tensor(COV, requires_grad=True)
    ours.Wishart(df, cov).rsample((3,)).sum().backward()
    assert bool(rl.isfinite(df.grad).all()) and bool((cov.grad != 0).all())


def test_register_kl():
    class Mine(ours.Normal):
        pass

    ours.register_kl(Mine, ours.Normal)(lambda p, q: "mine")
    assert ours.kl_divergence(Mine(0.0, 1.0), ours.Normal(0.0, 1.0)) == "mine"
    assert ours.kl_divergence(ours.Normal(0.0, 1.0), Mine(0.0, 1.0)).item() == 0.0
    with pytest.raises(TypeError, match="Distribution subclass"):
        ours.register_kl(3, ours.Normal)


REFUSED = {
    "scale": lambda d, lib: d.Normal(lib.zeros(2), -lib.ones(2)),
    "number": lambda d, lib: d.Normal(0.0, 1.0).log_prob(3),
    "support": lambda d, lib: d.Bernoulli(0.5).log_prob(lib.tensor(0.5)),
    "broadcast": lambda d, lib: d.Normal(lib.zeros(2), 1.0).log_prob(lib.zeros(3)),
    "event": lambda d, lib: d.MultivariateNormal(lib.zeros(2), lib.eye(2)).log_prob(lib.zeros(3)),
    "neither": lambda d, lib: d.Categorical(),
    "both": lambda d, lib: d.Bernoulli(0.5, 0.5),
    "scalar probs": lambda d, lib: d.Categorical(lib.tensor(1.0)),
    "no covariance": lambda d, lib: d.MultivariateNormal(lib.zeros(2)),
    "text": lambda d, lib: d.Normal("a", 1),
    "independent": lambda d, lib: d.Independent(d.Normal(lib.zeros(3), 1.0), 2),
    "uniform": lambda d, lib: d.Uniform(1.0, 0.0),
    "mixture": lambda d, lib: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(lib.zeros(2), 1.0)),
    "not definite": lambda d, lib: d.MultivariateNormal(lib.zeros(2), lib.tensor([[1.0, 2.0], [2.0, 1.0]])),
    "lkj": lambda d, lib: d.LKJCholesky(1),
    "category": lambda d, lib: d.Categorical(lib.ones(3)).log_prob(lib.tensor(5)),
    "counts": lambda d, lib: d.Binomial(lib.tensor([3, 4]), lib.tensor(0.5)).enumerate_support(),
    "kl": lambda d, lib: d.kl_divergence(d.Normal(0.0, 1.0), d.Binomial(3, lib.tensor(0.5))),
    "simplex": lambda d, lib: d.Dirichlet(lib.ones(3)).log_prob(lib.ones(3)),
    "nan": lambda d, lib: d.Normal(lib.tensor(float("nan")), 1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    results = []
    for d, lib in ((ours, rl), (theirs, oracle)):
        with pytest.raises((ValueError, NotImplementedError)) as caught:
            REFUSED[name](d, lib)
        results.append((caught.type, str(caught.value).replace("rushlight.", "torch.").split()[:5]))
    assert results[0] == results[1]  # the class, and the words one searches for


def test_validation_can_be_turned_off():
    ours.Normal(0.0, -1.0, validate_args=False)
    ours.Distribution.set_default_validate_args(False)
    try:
        ours.Normal(0.0, -1.0)
    finally:
        ours.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        ours.Normal(0.0, -1.0)


def test_gradient_of_log_prob():
    grads = []
    for d, lib in ((ours, rl), (theirs, oracle)):
        loc, scale = lib.tensor([0.5, 1.0], requires_grad=True), lib.tensor([1.0, 2.0], requires_grad=True)
        d.Normal(loc, scale).log_prob(lib.tensor([0.0, 3.0])).sum().backward()
        logits = lib.tensor([[1.0, 2.0, 0.5]], requires_grad=True)
        d.Categorical(logits=logits).log_prob(lib.tensor([1])).sum().backward()
        grads.append(loc.grad.tolist() + scale.grad.tolist() + logits.grad.tolist()[0])
    assert grads[0] == pytest.approx(grads[1], rel=1e-5)


def test_pickle():
    normal = pickle.loads(pickle.dumps(ours.Normal(rl.zeros(2), rl.ones(2))))
    assert normal.log_prob(rl.zeros(2)).tolist() == pytest.approx([-0.9189385] * 2)
