"""Transforms, constraints and their registry against torch.distributions."""

import pytest

import rushlight as rl
from rushlight import distributions as ours
from rushlight.distributions import constraints, utils

oracle = pytest.importorskip("torch")
theirs = oracle.distributions

TRANSFORMS = {
    "abs": lambda d, t: d.AbsTransform(),
    "affine": lambda d, t: d.AffineTransform(t([1.0, 2.0, 3.0]), t([-1.0, 2.0, 0.5])),
    "affine number": lambda d, t: d.AffineTransform(1.0, -2.0),
    "affine event": lambda d, t: d.AffineTransform(1.0, t([1.0, 2.0, 3.0]), event_dim=1),
    "exp": lambda d, t: d.ExpTransform(),
    "log": lambda d, t: d.ExpTransform().inv,
    "power": lambda d, t: d.PowerTransform(t(2.5)),
    "sigmoid": lambda d, t: d.SigmoidTransform(),
    "softplus": lambda d, t: d.SoftplusTransform(),
    "tanh": lambda d, t: d.TanhTransform(),
    "softmax": lambda d, t: d.SoftmaxTransform(),
    "stick": lambda d, t: d.StickBreakingTransform(),
    "corr": lambda d, t: d.CorrCholeskyTransform(),
    "compose": lambda d, t: d.ComposeTransform(
        [d.AffineTransform(0.5, 2.0), d.SigmoidTransform(), d.AffineTransform(1.0, t([1.0, 2.0, 3.0]))]
    ),
    "compose event": lambda d, t: d.ComposeTransform(
        [d.ExpTransform(), d.AffineTransform(0.0, 2.0, event_dim=1)]
    ),
    "empty": lambda d, t: d.ComposeTransform([]),
    "independent": lambda d, t: d.IndependentTransform(d.ExpTransform(), 1),
    "reshape": lambda d, t: d.ReshapeTransform((3,), (1, 3)),
    "cat": lambda d, t: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)], -1, [2, 1]),
    "stack": lambda d, t: d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.ExpTransform()], -1),
    "cdf": lambda d, t: d.CumulativeDistributionTransform(d.Normal(0.5, 2.0)),
}
X = [[0.1, 0.7, 1.3], [0.4, 0.2, 2.1]]


def outcome(function):
    try:
        value = function()
    except (NotImplementedError, RuntimeError, ValueError) as error:
        return type(error).__name__
    if isinstance(value, (rl.Tensor, oracle.Tensor)):
        return list(value.shape), pytest.approx(value.reshape(-1).tolist(), rel=1e-4, abs=1e-5)
    return value


@pytest.mark.parametrize("cache", [0, 1])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name, cache):
    results = []
    for d, lib in ((ours, rl), (theirs, oracle)):
        t = TRANSFORMS[name](d, lib.tensor).with_cache(cache)
        x = lib.tensor(X)
        y = t(x)
        results.append(
            [
                outcome(lambda y=y: y),
                outcome(lambda t=t, y=y: t.inv(y)),
                outcome(lambda t=t, x=x, y=y: t.log_abs_det_jacobian(x, y)),
                outcome(lambda t=t, x=x, y=y: t.inv.log_abs_det_jacobian(y, x)),
                outcome(lambda t=t, x=x: tuple(t.forward_shape(x.shape))),
                outcome(lambda t=t, y=y: tuple(t.inverse_shape(y.shape))),
                outcome(lambda t=t: t.bijective),
                outcome(lambda t=t: t.sign),
                repr(t),
                repr(t.inv),
                outcome(lambda t=t: repr(t.domain)),
                outcome(lambda t=t: repr(t.codomain)),
                outcome(lambda t=t: (t.domain.event_dim, t.codomain.event_dim)),
                t.inv.inv is t or name == "empty",
                cache == 0
                or not t.bijective
                or t.inv(t(x)) is x
                or name in ("compose", "compose event", "empty"),
            ]
        )
    mine, expected = results
    for a, b in zip(mine, expected, strict=True):
        if isinstance(b, tuple) and len(b) == 2 and isinstance(b[0], list):
            assert a[0] == b[0] and a[1].expected == b[1]
        else:
            assert a == b
    assert mine[-1] and mine[-2]


def test_equality_and_refusals():
    assert ours.ExpTransform() == ours.ExpTransform() != ours.TanhTransform()
    assert ours.AffineTransform(1.0, 2.0) == ours.AffineTransform(1.0, 2.0) != ours.AffineTransform(1.0, 3.0)
    assert ours.AffineTransform(rl.zeros(2), 1.0) == ours.AffineTransform(rl.zeros(2), 1.0)
    assert ours.PowerTransform(rl.tensor(2.0)) == ours.PowerTransform(rl.tensor(2.0))
    assert ours.ExpTransform().inv == ours.ExpTransform().inv
    with pytest.raises(ValueError, match="cache_size"):
        ours.ExpTransform(cache_size=3)
    with pytest.raises(ValueError, match="different numbers of elements"):
        ours.ReshapeTransform((2,), (3,))
    with pytest.raises(TypeError, match="unhashable"):
        hash(ours.ExpTransform())
    with pytest.raises(ValueError, match="Transform or list"):
        ours.TransformedDistribution(ours.Normal(0.0, 1.0), [3])


SPACES = {
    "real": lambda c: c.real,
    "positive": lambda c: c.positive,
    "nonnegative": lambda c: c.nonnegative,
    "unit": lambda c: c.unit_interval,
    "greater": lambda c: c.greater_than(1.5),
    "less": lambda c: c.less_than(-0.5),
    "interval": lambda c: c.interval(-2.0, 3.0),
    "half open": lambda c: c.half_open_interval(0.5, 1.0),
    "simplex": lambda c: c.simplex,
    "corr": lambda c: c.corr_cholesky,
    "vector": lambda c: c.independent(c.positive, 1),
    "cat": lambda c: c.cat([c.positive, c.real], -1, [2, 1]),
    "stack": lambda c: c.stack([c.positive, c.real, c.unit_interval], -1),
    "lower": lambda c: c.lower_cholesky,
    "definite": lambda c: c.positive_definite,
}


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", SPACES)
def test_registry(name, registry):
    results = []
    for d, lib in ((ours, rl), (theirs, oracle)):
        constraint = SPACES[name](d.constraints)
        x = lib.tensor(X) if name not in ("lower", "definite") else lib.tensor(X)[:, :2]
        try:
            transform = getattr(d, registry)(constraint)
        except NotImplementedError as error:
            results.append(str(error))
            continue
        y = transform(x)
        assert bool(constraint.check(y).all())
        results.append(([round(v, 4) for v in y.reshape(-1).tolist()], repr(transform)))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "name, values",
    [
        ("boolean", [0.0, 1.0, 0.5]),
        ("one_hot", [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]),
        ("nonnegative_integer", [0.0, 3.0, -1.0, 0.5]),
        ("positive_integer", [0.0, 3.0, 1.0]),
        ("real", [0.0, float("nan"), float("inf")]),
        ("real_vector", [[0.0, float("nan")], [0.0, 1.0]]),
        ("simplex", [[0.5, 0.5], [0.5, 0.6], [-0.5, 1.5]]),
        ("lower_triangular", [[[1.0, 0.0], [2.0, -1.0]], [[1.0, 1.0], [0.0, 1.0]]]),
        ("lower_cholesky", [[[1.0, 0.0], [2.0, -1.0]], [[1.0, 0.0], [3.0, 1.0]]]),
        ("corr_cholesky", [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.6, 0.9]]]),
        ("square", [[[1.0, 0.0], [0.6, 0.8]]]),
        ("symmetric", [[[1.0, 0.5], [0.5, 0.8]], [[1.0, 0.5], [0.4, 0.8]]]),
        ("positive_semidefinite", [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]),
        ("positive_definite", [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]),
        ("unit_interval", [0.0, 1.0, 1.1]),
    ],
)
def test_constraints(name, values):
    mine, expected = getattr(constraints, name), getattr(theirs.constraints, name)
    assert mine.check(rl.tensor(values)).tolist() == expected.check(oracle.tensor(values)).tolist()
    assert repr(mine) == repr(expected)
    assert (mine.is_discrete, mine.event_dim) == (expected.is_discrete, expected.event_dim)


def test_dependent_constraints():
    assert constraints.is_dependent(ours.Uniform.support)
    assert not constraints.is_dependent(ours.Uniform(0.0, 1.0).support)
    with pytest.raises(NotImplementedError):
        _ = constraints.dependent.event_dim
    assert constraints.dependent(event_dim=2).event_dim == 2


def test_triangles():
    for lib, u in ((rl, utils), (oracle, theirs.utils)):
        for diag in (-1, 0):
            matrix = lib.arange(18.0).reshape(2, 3, 3)
            vector = u.tril_matrix_to_vec(matrix, diag)
            assert vector.tolist() == [
                m.tolist() for m in [x[lib.tril(lib.ones(3, 3), diag) == 1] for x in matrix]
            ]
            assert u.vec_to_tril_matrix(vector, diag).tolist() == matrix.tril(diag).tolist()
    with pytest.raises(ValueError, match="lower triangular"):
        utils.vec_to_tril_matrix(rl.ones(4))
