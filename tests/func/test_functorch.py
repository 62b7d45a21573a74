"""functorch's names and rules: randomness inside vmap, types of samples without dimensions, modules as functions."""

import pytest

import rushlight as rl
from rushlight import func, nn, vmap
from rushlight._functorch.make_functional import functional_init_with_buffers
from rushlight._functorch.vmap import restore_vmap
from rushlight.functorch.experimental import chunk_vmap


@pytest.mark.parametrize(
    ("args", "dims", "want"),
    [
        ((rl.ones(2), rl.tensor(1.0, dtype=rl.float64)), (0, None), rl.float64),
        ((rl.ones(2, 3), rl.ones(2, dtype=rl.float64)), (0, 0), rl.float32),
        ((rl.ones(2, dtype=rl.float64), rl.ones(2, 3)), (0, 0), rl.float32),
        ((rl.ones(2, 3), rl.ones(2, 3, dtype=rl.float64)), (0, 0), rl.float64),
        ((rl.ones(2, 3, dtype=rl.int32), rl.ones(2)), (0, 0), rl.float32),
    ],
)
@pytest.mark.parametrize("op", [rl.add, rl.mul, rl.div, rl.pow])
def test_types_are_promoted_as_those_of_samples(op, args, dims, want):
    assert vmap(op, in_dims=dims)(*args).dtype == want


def draws(f, randomness, *args, in_dims=0):
    rl.manual_seed(3)
    return vmap(f, in_dims=in_dims, randomness=randomness)(*args)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: rl.bernoulli(x * 0 + 0.5),
        lambda x: rl.normal(x, 1.0),
        lambda x: rl.multinomial(x.abs() + 1, 2),
        lambda x: rl.poisson(x.abs()),
    ],
)
def test_same_draws_do_not_follow_from_mapped_values(f):
    with pytest.raises(RuntimeError, match="support same randomness with a batched tensor input"):
        draws(f, "same", rl.ones(4, 5))
    assert draws(f, "different", rl.ones(4, 5)).shape[0] == 4


@pytest.mark.parametrize(
    "f", [lambda p: rl.bernoulli(p), lambda p: rl.normal(p, 1.0), lambda p: rl._standard_gamma(p)]
)
def test_one_call_draws_for_all_samples(f):
    p = rl.full((20,), 0.5)
    rl.manual_seed(3)
    plain = f(p.expand(4, 20))
    mapped = draws(lambda _: f(p), "different", rl.ones(4))
    assert mapped.shape == (4, 20) and not rl.equal(mapped[0], mapped[1])
    if f(p).dtype == plain.dtype and "gamma" not in f.__code__.co_names[-1]:
        assert rl.equal(mapped, plain)


def test_draws_in_place():
    x = rl.zeros(3, 6)
    out = draws(lambda t: t.normal_(), "same", x)
    assert rl.equal(out[0], out[1]) and out is x
    out = draws(lambda t: t.normal_(), "different", rl.zeros(3, 6))
    assert not rl.equal(out[0], out[1])
    shared = rl.zeros(6)
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        draws(lambda _: shared.normal_(), "different", rl.ones(3))
    with pytest.raises(RuntimeError, match="more elements than `self`"):
        draws(lambda p: shared.bernoulli_(p), "different", rl.full((3, 6), 0.5))
    with pytest.raises(RuntimeError, match="calling out variants"):
        draws(lambda _: rl.randn(6, out=shared), "same", rl.ones(3))


def test_jacfwd_follows_the_rule():
    with pytest.raises(RuntimeError, match="randomness error mode"):
        func.jacfwd(rl.bernoulli)(rl.rand(3))
    func.jacfwd(rl.bernoulli, randomness="same")(rl.rand(3))


def test_dims_of_arguments_and_results():
    x = rl.rand(2, 3)
    assert rl.equal(vmap(lambda t: t, out_dims=(1,))(x), x.t())
    with pytest.raises(ValueError, match="expected `in_dims` to be int or a"):
        vmap(rl.mul, [0, 0])(x, x)
    with pytest.raises(ValueError, match="must be an int, None or a python collection of ints"):
        vmap(lambda t: t, out_dims=("x",))(x)
    assert vmap(rl.Tensor.acos_)(x) is x


def test_samples_without_dimensions():
    x = rl.rand(4)
    assert vmap(lambda t: rl.squeeze(t, dim=0))(x).shape == (4,)
    assert vmap(lambda t: t.transpose(0, -1))(x) is x
    assert vmap(lambda t: t.fill_(t[0] * 0 + 2) if t.dim() else t)(x).shape == (4,)
    filled = vmap(lambda t, v: t.fill_(v))(rl.zeros(2, 3), rl.tensor([1.0, 2.0]))
    assert filled.tolist() == [[1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (rl.mm, ((2, 2, 2), (2,))),
        (rl.bmm, ((2, 2, 2), (2, 2))),
        (rl.mv, ((2, 2), (2, 2))),
        (rl.dot, ((2, 2), (2,))),
    ],
)
def test_products_check_ranks(f, shapes):
    with pytest.raises(RuntimeError, match="Shape mismatch"):
        vmap(f)(*(rl.ones(3, *s) for s in shapes))


def test_indices_that_differ_by_sample():
    def put(t, i, v):
        t[:, i] = v
        return t

    out = vmap(put)(rl.zeros(2, 2, 3), rl.tensor([[0], [2]]), rl.ones(2, 2, 1))
    assert out[0].tolist() == [[1, 0, 0]] * 2 and out[1].tolist() == [[0, 0, 1]] * 2
    x = rl.zeros(2, 3)
    assert vmap(lambda t: t.index_fill(0, rl.tensor([1]), 5.0))(x).tolist() == [[0, 5, 0]] * 2


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda t: rl.abs(t, out=t), "doesn't work on out= or view ops"),
        (lambda t: t.data, "accessing `data` under vmap"),
        (lambda t: t.clone(memory_format=rl.channels_last), "only supported with memory_format"),
    ],
)
def test_what_vmap_refuses(f, words):
    with pytest.raises(RuntimeError, match=words):
        vmap(f)(rl.ones(2, 3))


def test_tensors_that_escape():
    kept = []
    vmap(lambda t: kept.append(t) or t)(rl.ones(2))
    with pytest.raises(RuntimeError, match="may have escaped from inside a function being vmapped"):
        kept[0] + 1


def test_functions_without_setup_context_are_refused():
    class Old(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(RuntimeError, match="must override the setup_context"):
        func.grad(lambda x: Old.apply(x).sum())(rl.ones(2))
    assert Old.apply(rl.ones(1)).item() == 2


@pytest.mark.parametrize("chunks", [1, 2, 3, 7])
def test_chunks(chunks):
    x = rl.rand(4, 5)
    assert rl.equal(chunk_vmap(rl.sin, chunks=chunks)(x), x.sin())


def test_levels_by_hand():
    f = rl._C._functorch
    level = f._vmap_increment_nesting(3, "error")
    try:
        t = f._add_batch_dim(rl.arange(6.0).view(2, 3), 1, level)
        assert (
            f.is_batchedtensor(t)
            and t.shape == (2,)
            and f.maybe_get_level(t) == level == f.maybe_current_level()
        )
        out = f._remove_batch_dim(t.sum(), level, 3, 0)
    finally:
        f._vmap_decrement_nesting()
    assert out.tolist() == [3.0, 5.0, 7.0]
    assert f.reshape_dim_into(0, 1, rl.zeros(2, 3, 5)).shape == (3, 10)
    assert f.reshape_dim_outof(-1, 2, rl.zeros(3, 8)).shape == (3, 2, 4)
    out, dims = restore_vmap(lambda a, b: (a + b, b), (0, None), 2, "error")(rl.ones(2), rl.ones(()))
    assert out[0].tolist() == [2.0, 2.0] and dims == (0, None)


def test_the_loop_over_samples_can_be_switched_off():
    f = rl._C._functorch
    f._set_vmap_fallback_enabled(False)
    try:
        vmap(rl.slogdet)(rl.eye(2).expand(3, 2, 2))
        with pytest.raises(RuntimeError, match="Fallback disabled"):
            vmap(lambda t: rl.histc(t, 4))(rl.rand(2, 3))
    finally:
        f._set_vmap_fallback_enabled(True)


def test_buffers_that_a_module_assigns_are_given_back():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", rl.zeros(1))

        def forward(self, x):
            self.count = self.count + 1
            return x

    m, state = Counter(), {"count": rl.zeros(1)}
    func.functional_call(m, state, rl.ones(1))
    assert state["count"].item() == 1 and m.count.item() == 0


def test_models_of_an_ensemble():
    weights, buffers, function, names, _ = functional_init_with_buffers(nn.BatchNorm1d, (3,))(2)
    assert [w.shape for w in weights] == [(3, 2)] * 2 and len(buffers) == 3 and names == ("weight", "bias")
    function.stateless_model.eval()
    assert vmap(function, in_dims=(0, 0, None))(weights, buffers, (rl.rand(4, 2),)).shape == (3, 4, 2)


def test_names_of_convolution_kernels():
    kinds, select = rl._C._ConvBackend, rl._C._select_conv_backend
    x, w = rl.zeros(2, 6, 7, 8), rl.zeros(12, 2, 3, 3)
    assert select(x, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 3) == kinds.Slow2d
    assert select(x, w, None, (1, 1), (0, 0), (2, 2), False, (0, 0), 3) == kinds.SlowDilated2d
    assert select(x[:0], w, None, (1, 1), (0, 0), (2, 2), False, (0, 0), 3) == kinds.Empty
    with rl.backends.mkldnn.flags(enabled=False):
        assert not rl._C._get_mkldnn_enabled()
    assert rl._C._get_mkldnn_enabled()


def test_patterns_of_dimensions():
    from rushlight.functorch.einops import rearrange
    from rushlight.functorch.einops._parsing import ParsedExpression, parse_pattern

    x = rl.arange(24).view(2, 3, 4)
    assert rl.equal(rearrange(x, "... -> (...)"), x.flatten())
    assert rl.equal(rearrange(x, "a b c -> c (a b)"), x.permute(2, 0, 1).reshape(4, 6))
    assert rl.equal(rearrange([x, x], "... -> ..."), rl.stack([x, x]))
    assert ParsedExpression("a ... (b 1) 5").composition[:3] == [["a"], "\u2026", ["b"]]
    for pattern in ("a b -> a b ...", "a a -> a a", "(a (b)) -> a b", "_a -> _a", "(...) -> ..."):
        with pytest.raises(ValueError):
            parse_pattern(pattern, {})


def test_modules_called_with_other_tensors():
    from rushlight.nn.utils import stateless

    m = nn.Sequential(nn.Linear(1, 1))
    m.note = 3.0
    m[0].above = m  # below itself
    x, w = rl.ones(1, 1), rl.full((1, 1), 2.0)
    out = func.functional_call(m[0], {"weight": w, "above.0.bias": rl.zeros(1)}, x, tie_weights=False)
    assert out.item() == 2.0
    del m[0].above
    with pytest.raises(TypeError, match="attribute `note`: 3.0 is not an instance of torch.Tensor"):
        func.functional_call(m, {"note": w}, x)
    with pytest.raises(TypeError, match="is not an instance of torch.Tensor"):
        func.functional_call(m, {"0.weight": 5}, x)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        func.functional_call(m, ({"0.weight": w}, {"0.weight": w}), x)
    with pytest.raises(RuntimeError, match="Jitted modules"):
        func.functional_call(rl.jit.script(m), {}, x)
    with pytest.warns(FutureWarning, match="Please use `torch.func.functional_call`"):
        stateless.functional_call(m, {"0.weight": w}, x)


def test_continuous_bernoulli_at_the_ends():
    d = rl.distributions.ContinuousBernoulli(logits=rl.tensor([1e9, -1e9]))
    assert d.log_prob(rl.tensor([1.0, 0.0])).isfinite().all()


def test_gradients_under_no_grad_are_plain_values():
    def shifted(x):
        with rl.no_grad():
            shift = func.grad(lambda t: 0.25 * t**4)(x)
        return x**3 - shift

    x = rl.tensor(1.5)
    assert func.grad(shifted)(x).item() == pytest.approx(6.75)
    with rl.no_grad():
        assert not func.grad(lambda t: t**2)(rl.tensor(2.0, requires_grad=True)).requires_grad


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: func.grad(lambda t: t.sum(), argnums=())(x), "must be non-empty"),
        (lambda x: func.grad(lambda t: t.sum(), argnums=0.0)(x), "must be int or Tuple"),
        (lambda x: func.jacrev(lambda t: ())(x), "Expected f to be a function that has non-empty output"),
        (
            lambda x: func.grad(lambda t: (t.sum(), 1), has_aux=True)(x),
            "Expected tensors, got unsupported type",
        ),
        (lambda x: func.jvp(lambda t: t, (x,), (x, x)), "same python structure"),
        (lambda x: func.jvp(lambda: x, (), ()), "at least one Tensor"),
        (lambda x: func.vjp(lambda t: t, x)[1]((x, x)), "Expected pytree structure"),
    ],
)
def test_what_transforms_refuse(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(rl.ones(2))


def test_jacobians_of_scalars():
    assert func.jacfwd(lambda x: x**2)(rl.tensor(3.0)).item() == 6.0


def test_older_names_say_where_they_have_moved():
    import rushlight.functorch as old

    for name, home in (
        ("vmap", "torch.vmap"),
        ("grad", "torch.func.grad"),
        ("hessian", "torch.func.hessian"),
    ):
        with pytest.warns(FutureWarning, match=f"Please use `{home}`"):
            getattr(old, name)(rl.sin)


def test_transforms_keep_the_name_of_the_function():
    def my_function(x):
        return x.sum()

    for transform in (func.grad, func.jacrev, func.jacfwd, func.grad_and_value, vmap):
        assert transform(my_function).__name__ == "my_function"


def test_tied_parameters_are_given_once():
    from rushlight._functorch.make_functional import make_functional

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    m = Tied()
    f, params = make_functional(m)
    assert len(params) == 3
    x = rl.rand(1, 2)
    assert rl.allclose(f(params, x), m(x))
