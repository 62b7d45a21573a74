"""Constraints and transforms beside PyTorch's: checks, both directions, Jacobians, shapes, registries, errors."""

import pickle

import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")
LIBS = (torch, rl)


def plain(value):
    if isinstance(value, (torch.Tensor, rl.Tensor)):
        return torch.tensor(value.detach().tolist(), dtype=torch.float64)
    if isinstance(value, (torch.Size, rl.Size)):
        return tuple(value)
    return value


def both(what, f):
    """f(lib) under both libraries: the same value, or the same class of error."""
    results = []
    for lib in LIBS:
        try:
            results.append((plain(f(lib)), None))
        except Exception as e:
            results.append((None, type(e).__name__))
    (expected, error), (got, our_error) = results
    # PyTorch checks some arguments by `assert`
    assert our_error == error or (error == "AssertionError" and our_error in ("ValueError", "IndexError")), (
        what
    )
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(
            got, expected, rtol=1e-6, atol=1e-8, equal_nan=True, msg=lambda m: f"{what}: {m}"
        )
    else:
        assert got == expected, what
    return expected


def of(name):
    """The constraint of that name, with bounds where it needs some."""

    def make(lib):
        c = lib.distributions.constraints
        low, high = lib.tensor([-1.0, 0.5]), lib.tensor([2.0, 3.0])
        given = {
            "cat": lambda: c.cat([c.positive, c.unit_interval], -1, [1, 1]),
            "stack": lambda: c.stack([c.positive, c.real], -1),
            "independent": lambda: c.independent(c.positive, 1),
            "greater_than": lambda: c.greater_than(low),
            "greater_than_eq": lambda: c.greater_than_eq(0.5),
            "less_than": lambda: c.less_than(high),
            "interval": lambda: c.interval(low, high),
            "half_open_interval": lambda: c.half_open_interval(-0.5, 2),
            "integer_interval": lambda: c.integer_interval(-1, 2),
            "multinomial": lambda: c.multinomial(3),
            "MixtureSameFamilyConstraint": lambda: c.MixtureSameFamilyConstraint(c.positive),
        }
        return given[name]() if name in given else getattr(c, name)

    return make


CONSTRAINTS = [
    n
    for n in torch.distributions.constraints.__all__
    if n not in ("Constraint", "dependent", "dependent_property", "is_dependent")
]

VALUES = [
    [[0.0, 1.0], [1.0, 0.0]],
    [[1.0, 0.0], [0.6, 0.8]],
    [[2.0, 0.3], [0.3, 1.0]],
    [[1.0, 2.0], [2.0, 1.0]],
    [[0.25, 0.75], [-1.0, 2.0]],
    [[float("nan"), 1.0], [float("inf"), -float("inf")]],
    [[0.5, 0.5 + 1e-8], [3.0, -0.0]],
    [0.3, 0.7],
    [-1.0, 3.0],
    0.5,
    2,
]


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints(name):
    for value in VALUES:
        both(
            f"{name} of {value}",
            lambda lib, value=value: of(name)(lib).check(lib.tensor(value, dtype=lib.float64)),
        )
    for attribute in ("event_dim", "is_discrete"):
        both(attribute, lambda lib, attribute=attribute: getattr(of(name)(lib), attribute))
    if name not in ("cat", "stack"):  # those show a class name only
        both("repr", lambda lib: repr(of(name)(lib)))


def test_dependent_constraints():
    for lib in LIBS:
        c = lib.distributions.constraints
        assert c.is_dependent(lib.distributions.Uniform.support) and not c.is_dependent(c.real)
        known = c.dependent(is_discrete=True, event_dim=2)
        assert (known.is_discrete, known.event_dim) == (True, 2)
        with pytest.raises(NotImplementedError):
            c.dependent.event_dim  # noqa: B018
        with pytest.raises(ValueError, match="dependent constraint"):
            c.dependent.check(lib.zeros(1))


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_registries(registry, name):
    shape = (2, 3, 3) if name in ("corr_cholesky", "lower_cholesky") or "definite" in name else (3, 2)

    def transform(lib):
        return getattr(lib.distributions, registry)(of(name)(lib))

    def image(lib):
        lib.manual_seed(3)
        t = transform(lib)
        shape_of_x = t.inverse_shape(lib.Size(shape)) if name == "corr_cholesky" else shape
        x = lib.randn(*shape_of_x, dtype=lib.float64)
        y = t(x)
        return x, y, t

    if both("class", lambda lib: type(transform(lib)).__name__) is None:
        return
    both("y", lambda lib: image(lib)[1])
    both("inside", lambda lib: of(name)(lib).check(image(lib)[1]))
    both("back", lambda lib: image(lib)[2].inv(image(lib)[1]))

    def jacobian(lib):
        x, y, t = image(lib)
        return t.log_abs_det_jacobian(x, y)

    both("jacobian", jacobian)


def transforms(lib):
    t, D = lib.distributions.transforms, lib.distributions
    v = lib.tensor([0.5, -2.0, 1.5], dtype=lib.float64)
    return {
        "exp": t.ExpTransform(),
        "log": t.ExpTransform().inv,
        "power": t.PowerTransform(lib.tensor(2.5, dtype=lib.float64)),
        "powers": t.PowerTransform(v),
        "sigmoid": t.SigmoidTransform(),
        "softplus": t.SoftplusTransform(),
        "tanh": t.TanhTransform(),
        "abs": t.AbsTransform(),
        "affine": t.AffineTransform(1.0, -2.0),
        "affine tensor": t.AffineTransform(v, v, event_dim=1),
        "softmax": t.SoftmaxTransform(),
        "sticks": t.StickBreakingTransform(),
        "corr": t.CorrCholeskyTransform(),
        "cholesky": t.LowerCholeskyTransform(),
        "definite": t.PositiveDefiniteTransform(),
        "reshape": t.ReshapeTransform((3,), (3, 1)),
        "cdf": t.CumulativeDistributionTransform(D.Normal(v.abs(), v.abs())),
        "cat": t.CatTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)], dim=-1, lengths=[2, 1]),
        "cat rows": t.CatTransform([t.ExpTransform(), t.TanhTransform()], dim=0, lengths=[2, 1]),
        "stack": t.StackTransform([t.ExpTransform(), t.TanhTransform(), t.AbsTransform()], dim=-1),
        "compose": t.ComposeTransform([t.AffineTransform(0.0, 3.0), t.SigmoidTransform()]),
        "wide compose": t.ComposeTransform([t.ExpTransform(), t.AffineTransform(v, v, event_dim=1)]),
        "compose vectors": t.ComposeTransform([t.TanhTransform(), t.StickBreakingTransform()]),
        "compose back": t.ComposeTransform([t.TanhTransform(), t.StickBreakingTransform()]).inv,
        "identity": t.identity_transform,
        "independent": t.IndependentTransform(t.ExpTransform(), 1),
        "independent of vectors": t.IndependentTransform(t.StickBreakingTransform(), 1),
    }


NAMES = list(transforms(rl))


def matrix_of(lib):
    return lib.tensor([[0.2, -0.4, 1.1], [0.5, 0.3, -0.6], [0.7, 0.1, 0.4]], dtype=lib.float64)


@pytest.mark.parametrize("name", NAMES)
def test_transforms(name):
    def made(lib):
        return transforms(lib)[name]

    def x_of(lib):
        x = matrix_of(lib)
        if name in ("power", "powers", "log"):
            x = x.abs()
        return made(lib)(x).softmax(-1) if name == "compose back" else x

    def y_of(lib):
        return made(lib)(x_of(lib))

    both("y", y_of)
    both("x", lambda lib: made(lib).inv(y_of(lib)))
    both("jacobian", lambda lib: made(lib).log_abs_det_jacobian(x_of(lib), y_of(lib)))
    both("inverse jacobian", lambda lib: made(lib).inv.log_abs_det_jacobian(y_of(lib), x_of(lib)))
    for shape in ((), (3,), (4, 3), (2, 3, 3), (2, 5), (0, 3)):
        both(f"forward_shape {shape}", lambda lib, shape=shape: made(lib).forward_shape(lib.Size(shape)))
        both(f"inverse_shape {shape}", lambda lib, shape=shape: made(lib).inverse_shape(lib.Size(shape)))
    for attribute in ("bijective", "event_dim", "sign"):
        both(attribute, lambda lib, attribute=attribute: getattr(made(lib), attribute))
    for side in ("domain", "codomain"):
        both(side, lambda lib, side=side: getattr(made(lib), side).event_dim)
        both(side, lambda lib, side=side: getattr(made(lib), side).check(x_of(lib)))
    both("repr", lambda lib: repr(made(lib)))
    both("few dimensions", lambda lib: made(lib)(lib.tensor(0.5, dtype=lib.float64)).shape)
    both("same", lambda lib: made(lib) == made(lib))
    both("other", lambda lib: made(lib) == lib.distributions.transforms.SoftplusTransform())


@pytest.mark.parametrize("name", NAMES)
def test_caches(name):
    t = transforms(rl)[name].with_cache(1)
    assert t.with_cache(1) is t and t._cache_size == 1
    assert t.inv.inv is t
    if name in ("compose back", "log"):
        return
    x = matrix_of(rl).abs()
    y = t(x)
    assert t.inv(y) is x or name == "identity"
    assert t(x) is y
    again = pickle.loads(pickle.dumps(t))
    torch.testing.assert_close(plain(again(x)), plain(y))


def test_the_divergences_registered():
    def names(lib):
        return sorted((p.__name__, q.__name__) for p, q in lib.distributions.kl._KL_REGISTRY)

    assert set(names(torch)) <= set(names(rl))


def test_an_affine_transform_may_be_constant():
    t = rl.distributions.transforms.AffineTransform(1.0, 0)
    assert t.sign == 0 and t(rl.ones(2)).tolist() == [1.0, 1.0]
    assert t.log_abs_det_jacobian(rl.ones(2), rl.ones(2)).tolist() == [-float("inf")] * 2


def test_wrong_arguments():
    t = rl.distributions.transforms
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        t.ExpTransform(cache_size=2)
    with pytest.raises(ValueError, match="different numbers of elements"):
        t.ReshapeTransform((2,), (3,))
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        rl.distributions.biject_to(rl.distributions.constraints.boolean)
    with pytest.raises(TypeError, match="Expected constraint"):
        rl.distributions.biject_to.register(3, lambda c: None)
    with pytest.raises(ValueError, match="transforms must be a Transform"):
        rl.distributions.TransformedDistribution(rl.distributions.Normal(0.0, 1.0), [3])
