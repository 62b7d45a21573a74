"""vmap gives what a loop over the samples gives, and runs each op once."""

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap
from rushlight.nn import functional as F
from rushlight.profiler import profile


def randn(*size):
    return rl.randn(*size, dtype=rl.float64)


W = randn(3, 4)
BIG = randn(3, 3)
INDEX = rl.tensor([2, 0])
# Functions of one sample of shape (3, 4).
ONE = {
    "arithmetic": lambda x: (x * 2 - 1) / (x.abs() + 1) + x**2,
    "with a constant": lambda x: x + W,
    "smaller constant": lambda x: x * W[0],
    "larger constant": lambda x: x + W.expand(2, 3, 4),
    "reflected": lambda x: 1 / (2 - x.sigmoid()) - (3 - x),
    "comparison": lambda x: rl.where(x > 0, x, x.exp()),
    "where scalar": lambda x: rl.where(x > 0, x, 0.0),
    "clamp": lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=W),
    "activations": lambda x: F.relu(x) + F.gelu(x) + F.silu(x) + F.softplus(x) + F.elu(x) + x.tanh(),
    "sum": lambda x: x.sum(),
    "sum dim": lambda x: x.sum(0),
    "sum dims": lambda x: x.sum((0, -1), keepdim=True),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "mean all": lambda x: x.mean(),
    "prod": lambda x: x.prod() + x.prod(1).sum(),
    "var": lambda x: x.var() + x.std(0) @ x.var(0, unbiased=False),
    "max": lambda x: x.max() + x.max(0).values @ x.min(dim=0)[0],
    "amax": lambda x: x.amax() + x.amin((0,)),
    "argmax": lambda x: x.argmax() + x.argmax(1),
    "norm": lambda x: x.norm() + x.norm(dim=1).sum() + rl.linalg.norm(x) + rl.linalg.vector_norm(x, 1),
    "logsumexp": lambda x: x.logsumexp(0) + x.logsumexp((0, 1)),
    "softmax": lambda x: x.softmax(-1) + F.log_softmax(x, 0) + rl.softmax(x, dim=1),
    "cumsum": lambda x: x.cumsum(0) + x.cumprod(-1),
    "sort": lambda x: x.sort(0)[0] + x.sort(descending=True).values,
    "topk": lambda x: x.topk(2)[0].sum(0) * x.topk(2, dim=0).values[0, :2],
    "any all": lambda x: (x > 0).any(),
    "reshape": lambda x: x.reshape(-1) + x.view(12) + x.flatten() + x.ravel(),
    "reshape 2": lambda x: x.reshape(2, 6).unflatten(1, (2, 3)),
    "transpose": lambda x: x.T @ x + x.t() @ x.transpose(0, 1).mT + x.permute(1, 0) @ x.swapaxes(0, 1).transpose(0, 1),
    "movedim": lambda x: x.unsqueeze(1).movedim(0, -1).squeeze() + x.unsqueeze(0).squeeze(0).T,
    "expand": lambda x: x.unsqueeze(0).expand(2, -1, -1) + x.broadcast_to((2, 3, 4)),
    "repeat": lambda x: x.repeat(2, 1, 1) + x.tile(2, 1, 1),
    "split": lambda x: rl.cat(x.split(2, 1)[::-1], 1) + rl.cat(x.chunk(2, dim=1), dim=1),
    "stack": lambda x: rl.stack([x, W, x * 2], 1) + rl.stack(x.unbind(0)).unsqueeze(1),
    "cat": lambda x: rl.cat([x, W, x], -1),
    "flip": lambda x: x.flip(0) + x.roll(1, 1) + x.roll(1),
    "diagonal": lambda x: x[:, :3].diagonal() + rl.diag_embed(x.diagonal()).sum(0),
    "tril": lambda x: x.tril() + x.triu(1),
    "index int": lambda x: x[1] + x[-1, 2],
    "index slice": lambda x: x[1:, ::2] + x[..., 1:3][1:],
    "index none": lambda x: x[None, :, 1],
    "index tensor": lambda x: x[INDEX] + x[:, INDEX].sum() + x.index_select(0, INDEX),
    "index two": lambda x: x[INDEX, INDEX] + x[INDEX, :, None].sum(),
    "indices not adjacent": lambda x: x.unsqueeze(1)[INDEX, :, INDEX],
    "gather": lambda x: x.gather(1, x.argsort(1)),
    "gather constant": lambda x: x.gather(0, INDEX.unsqueeze(1).expand(2, 4)),
    "scatter": lambda x: rl.zeros(3, 4, dtype=x.dtype).scatter(1, x.argsort(1), x),
    "mapped index": lambda x: W[x.argmax(0), x.argmin(0)] + x[x.argmax(0)].sum(),
    "matmul": lambda x: x @ W.T + W @ x.T + x @ x.T,
    "matvec": lambda x: (x @ x[0]).sum() + (W @ x[0]).sum() + x[0] @ x[1] + W[0] @ x[0] + (x[:, 0] @ W).sum(),
    "matmul ranks": lambda x: x.expand(2, 3, 4) @ W.T + W.expand(2, 3, 4) @ x.T,
    "dot": lambda x: rl.dot(x[0], x[1]) + rl.mv(x, x[0]).sum() + rl.mm(x, W.T).sum() + rl.outer(x[0], x[1]).sum(),
    "einsum": lambda x: rl.einsum("ij,kj->ik", x, W),
    "addmm": lambda x: rl.addmm(BIG, x, W.T) + rl.addmm(BIG, x, x.T, beta=0.5, alpha=2),
    "linear": lambda x: F.linear(x, W) + F.linear(x, W, x[:, 0]) + F.linear(x, x, W[:, 0]),
    "layer norm": lambda x: F.layer_norm(x, (4,), W[0], x[0]) + F.layer_norm(x, (3, 4)),
    "linalg": lambda x: rl.linalg.inv(x @ x.T + BIG @ BIG.T + rl.eye(3)) + rl.linalg.det(x @ x.T),
    "losses": lambda x: F.mse_loss(x, W) + F.l1_loss(x, W) + F.cross_entropy(x, rl.tensor([0, 1, 3])),
    "ignored": lambda x: F.cross_entropy(x, rl.tensor([0, -100, 3]), reduction="mean"),
    "in place": lambda x: x.clone().mul_(2).add_(W).relu_(),
    "set items": lambda x: _written(x),
    "likes": lambda x: rl.zeros_like(x) + rl.full_like(x, 2.0) + x.new_ones(3, 4) + x.new_zeros(4),
    "casts": lambda x: x.float().double() + x.to(rl.float32).to(x.dtype),
    "no rule": lambda x: rl.renorm(x, 2, 0, 1.0) + rl.cross(x[:, :3], W[:, :3], dim=1).sum(),
    "conv": lambda x: F.conv1d(x.unsqueeze(0), BIG.unsqueeze(-1)) + F.conv1d(x, BIG.unsqueeze(-1)),
    "conv mapped": lambda x: F.conv1d(W.unsqueeze(0), x[:, :3].unsqueeze(-1), x[:, 0]),
    "pool": lambda x: F.max_pool1d(x.unsqueeze(0), 2) + F.avg_pool1d(x, 2),
    "attention": lambda x: F.scaled_dot_product_attention(*(x.reshape(1, 1, 3, 4),) * 3),
}  # fmt: skip


def _written(x):
    y = rl.zeros_like(x)
    y[0] = x[1]
    y[1:, 1] = 5.0
    y[2, 1:] = W[0, 1:]
    return y


def looped(f, *args):
    return rl.stack([f(*sample) for sample in zip(*(a.unbind(0) for a in args))])


@pytest.mark.parametrize("name", ONE)
def test_equals_a_loop(name):
    f, x = ONE[name], randn(5, 3, 4)
    expected = looped(f, x)
    actual = vmap(f)(x)
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    assert type(actual) is rl.Tensor
    assert rl.allclose(actual, expected)
    assert rl.allclose(vmap(f, in_dims=2, out_dims=-1)(x.movedim(0, 2)), expected.movedim(0, -1))
    assert rl.allclose(vmap(f, chunk_size=2)(x), expected)
    nested = vmap(vmap(f))(randn(2, 2, 3, 4))
    assert nested.shape == (2, 2, *expected.shape[1:])


@pytest.mark.parametrize("name", [n for n in ONE if n not in ("argmax", "any all", "likes")])
def test_gradients_through_and_inside(name):
    f, x = ONE[name], randn(4, 3, 4)

    def total(y):
        return f(y).square().sum()

    expected = looped(grad(total), x)
    assert rl.allclose(vmap(grad(total))(x), expected)
    x.requires_grad_()
    vmap(total)(x).sum().backward()
    assert rl.allclose(x.grad, expected)


def test_each_op_runs_once():
    x = randn(50, 3, 4)
    with profile() as p:
        vmap(lambda x: ((x @ W.T).relu().softmax(-1)[1:] * 2).sum())(x)
    found = {e.key: e.count for e in p.key_averages()}
    for name in ("aten::matmul", "aten::relu", "aten::softmax", "aten::mul", "aten::sum"):
        assert found[name] == 1, found


def _per_sample(model, x, t):
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(p, a, b):
        return F.cross_entropy(functional_call(model, p, (a.unsqueeze(0),)), b.unsqueeze(0))

    got = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, t)
    for i in range(len(x)):
        model.zero_grad()
        F.cross_entropy(model(x[i : i + 1]), t[i : i + 1]).backward()
        for k, v in model.named_parameters():
            assert rl.allclose(got[k][i], v.grad, atol=1e-5), k


def test_per_sample_gradients_of_an_mlp():
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    _per_sample(model, rl.randn(6, 4), rl.randint(0, 3, (6,)))


def test_per_sample_gradients_of_a_cnn():
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=2), nn.GroupNorm(2, 4),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    _per_sample(model, rl.randn(5, 2, 8, 8), rl.randint(0, 3, (5,)))


def test_per_sample_gradients_of_an_embedding():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(7, 4), nn.Linear(4, 3)

        def forward(self, x):
            return self.out(self.table(x).mean(1))

    _per_sample(Net(), rl.randint(0, 7, (5, 6)), rl.randint(0, 3, (5,)))


def test_ensembles():
    from rushlight.func import stack_module_state

    models = [nn.Linear(3, 2) for _ in range(4)]
    params, buffers = stack_module_state(models)
    x = rl.randn(5, 3)
    got = vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(params, buffers)
    assert rl.allclose(got, rl.stack([m(x) for m in models]), atol=1e-6)


def test_jacobians_and_hessians():
    x = randn(4, 3)
    f = lambda v: (v.sin() * v[0]).cumsum(0)  # noqa: E731
    assert rl.allclose(vmap(jacrev(f))(x), looped(jacrev(f), x))
    g = lambda v: (v**3).sum() * v[0]  # noqa: E731
    assert rl.allclose(vmap(hessian(g))(x), looped(hessian(g), x))
    t = randn(4, 3)
    got = vmap(lambda a, b: jvp(f, (a,), (b,))[1])(x, t)
    assert rl.allclose(got, rl.stack([jvp(f, (a,), (b,))[1] for a, b in zip(x, t)]))
    _, pull = vjp(f, x[0])
    assert rl.allclose(vmap(lambda v: pull(v)[0])(rl.eye(3, dtype=rl.float64)), jacrev(f)(x[0]))


def test_several_inputs_and_outputs():
    x, y = randn(3, 2), randn(2, 3)
    a, b = vmap(lambda p, q: (p + q["k"], {"s": p * 2}), in_dims=(0, {"k": 1}), out_dims=(1, 0))(x, {"k": y})
    assert rl.allclose(a, (x + y.T).T) and rl.allclose(b["s"], x * 2)
    assert rl.allclose(vmap(lambda p, q: p * q, (0, None))(x, y[:, 0]), x * y[:, 0])
    constant = vmap(lambda p: rl.ones(2))(x)
    assert constant.shape == (3, 2)
    assert vmap(lambda p: rl.ones(2), out_dims=None)(x).shape == (2,)
    assert vmap(lambda p: p.sum())(rl.zeros(0, 4)).shape == (0,)


class Square(rl.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g


class Generated(Square):
    generate_vmap_rule = True


class Ruled(Square):
    @staticmethod
    def vmap(info, in_dims, x):
        assert info.batch_size == 4 and in_dims == (0,)
        return Square.apply(x), 0


@pytest.mark.parametrize("f", [Generated, Ruled])
def test_functions_of_ones_own(f):
    x = randn(4, 3)
    assert rl.allclose(vmap(f.apply)(x), x * x)
    assert rl.allclose(vmap(grad(lambda v: f.apply(v).sum()))(x), 2 * x)
    x.requires_grad_()
    vmap(f.apply)(x).sum().backward()
    assert rl.allclose(x.grad, 2 * x)


def test_a_rule_made_of_forward_and_backward():
    class Scale(rl.autograd.Function):
        generate_vmap_rule = True
        runs = 0

        @staticmethod
        def forward(x, w, k):
            Scale.runs += 1
            return x.exp() * w, x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, w, ctx.k = inputs
            ctx.save_for_backward(x, w, output[0])
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, g, _):
            x, w, y = ctx.saved_tensors
            assert g.shape == x.shape == (3,)
            return g * y, (g * x.exp()).sum(), None

    x, w = randn(4, 3).requires_grad_(), randn(1)[0].requires_grad_()
    y, z = vmap(Scale.apply, (0, None, None))(x, w, 3)
    assert Scale.runs == 1 and rl.allclose(y, x.exp() * w) and rl.allclose(z, x * 3) and not z.requires_grad
    y.sum().backward()
    assert rl.allclose(x.grad, x.exp() * w) and rl.allclose(w.grad, x.exp().sum())
    second = vmap(grad(lambda v: grad(lambda u: Scale.apply(u, w, 1)[0].sum())(v).sum()))(x.detach())
    assert rl.allclose(second, x.exp() * w)


def test_functions_without_a_rule():
    class Old(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    class Both(Ruled):
        generate_vmap_rule = True

    x = randn(4, 3)
    for f, message in ((Old, "must override the setup_context"), (Square, "does not have vmap support"),
                       (Both, "both generate_vmap_rule=True and an overridden vmap")):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            vmap(f.apply)(x)


@pytest.mark.parametrize("f", [lambda x: x if x.sum() > 0 else -x, lambda x: x * x.sum().item(), lambda x: x.tolist(),
                               lambda x: x * float(x[0]), lambda x: x.numpy()])  # fmt: skip
def test_values_of_single_samples_are_refused(f):
    with pytest.raises(RuntimeError, match="vmap: It looks like you're"):
        vmap(f)(randn(4, 3))


def test_mistakes():
    x = randn(4, 3)
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        vmap(rl.add)(x, randn(3, 3))
    with pytest.raises(ValueError, match="in_dim=5"):
        vmap(rl.sin, in_dims=5)(x)
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda v: 3)(x)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(rl.sin, randomness="maybe")
    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        vmap(lambda v: rl.zeros(3, dtype=rl.float64).add_(v))(x)
    with pytest.raises(RuntimeError, match="is not possible"):
        vmap(lambda v: W.__setitem__(0, v[0]))(x)
    with pytest.raises(IndexError):
        vmap(lambda v: v.sum(1))(x)
    with pytest.raises(ValueError, match="chunk_size"):
        vmap(rl.sin, chunk_size=0)
    y = (W * 2).requires_grad_().sum()
    with pytest.raises(RuntimeError, match="inside a functorch transform"):
        vmap(lambda v: rl.autograd.backward(y, v[0]))(x)
    kept = []
    vmap(lambda v: kept.append(v) or v)(x)
    with pytest.raises(RuntimeError, match="after its vmap had ended"):
        kept[0] + 1
    assert rl.allclose(vmap(rl.sin)(x), x.sin())  # nothing is left of the failures


def test_values_that_differ_from_sample_to_sample():
    x = randn(3, 4)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::equal"):
        vmap(lambda v: v * rl.equal(v, v))(
            x
        )  # also where all samples agree: that may change with the next batch
    assert vmap(lambda v: v * rl.allclose(v, v))(x).equal(x)
    with pytest.raises(RuntimeError, match="(?i)control flow|a Python value for each sample"):
        vmap(lambda v: v * rl.allclose(v, x[0]))(x)


def test_results_of_unknown_size():
    for f in (
        rl.nonzero,
        rl.where,
        rl.unique,
        rl.unique_consecutive,
        lambda v: v[v > 0],
        lambda v: v.masked_select(v > 0),
    ):
        with pytest.raises(
            RuntimeError, match="vmap: We do not support batching operators that can .* dynamic shape"
        ):
            vmap(f)(randn(3, 4))
    assert vmap(lambda v: v[rl.tensor([True, False, True])])(randn(2, 3)).shape == (2, 2)


def test_transposed_in_place():
    x = randn(2, 3, 1, 4)
    for f, shape in ((lambda v: v.transpose_(0, -1), (4, 1, 3)), (lambda v: v.squeeze_(), (3, 4)),
                     (lambda v: v.squeeze_(1), (3, 4)), (lambda v: v.unsqueeze_(-1), (3, 1, 4, 1)),
                     (lambda v: v[:, 0].t_(), (4, 3))):  # fmt: skip
        seen = []
        y = vmap(
            lambda v, f=f, seen=seen: (
                seen.append(tuple(f(w := v.clone()).shape)) or f(v.clone()) * 1 + 0 * w.sum()
            )
        )(x)
        assert seen == [shape] and y.shape == (2, *shape)
        assert rl.equal(y, rl.stack([f(v.clone()) for v in x]))


# name -> call of a library
MISTAKES = {
    "no inputs": lambda m: m.func.vmap(lambda: m.ones(2))(),
    "in_dims dict": lambda m: m.func.vmap(m.sin, in_dims={"a": 0})(m.ones(2)),
    "in_dims None": lambda m: m.func.vmap(m.sin, in_dims=None)(m.ones(2)),
    "in_dims all None": lambda m: m.func.vmap(m.sin, in_dims=(None,))(m.ones(2)),
    "in_dims float": lambda m: m.func.vmap(m.sin, in_dims=(0.5,))(m.ones(2)),
    "in_dims structure": lambda m: m.func.vmap(m.sin, in_dims=(0, 0))(m.ones(2)),
    "in_dims range": lambda m: m.func.vmap(m.sin, in_dims=5)(m.ones(2)),
    "not a tensor": lambda m: m.func.vmap(m.add)(m.ones(2), 2),
    "sizes": lambda m: m.func.vmap(m.add)(m.ones(2), m.ones(3)),
    "out_dims structure": lambda m: m.func.vmap(lambda v: (v, v), out_dims=(0, 0, 0))(m.ones(2)),
    "out_dims None": lambda m: m.func.vmap(m.sin, out_dims=None)(m.ones(2)),
    "out_dims range": lambda m: m.func.vmap(m.sin, out_dims=3)(m.ones(2)),
    "out_dims str": lambda m: m.func.vmap(m.sin, out_dims="a")(m.ones(2)),
    "result": lambda m: m.func.vmap(lambda v: 3.0)(m.ones(2)),
    "randomness": lambda m: m.func.vmap(m.sin, randomness="maybe")(m.ones(2)),
    "random": lambda m: m.func.vmap(lambda v: m.rand(2))(m.ones(2)),
    "chunk": lambda m: m.func.vmap(m.sin, chunk_size=0)(m.ones(2)),
    "item": lambda m: m.func.vmap(lambda v: v * v.item())(m.ones(2)),
    "float": lambda m: m.func.vmap(lambda v: v * float(v))(m.ones(2)),
    "branch": lambda m: m.func.vmap(lambda v: v if v > 0 else -v)(m.ones(2)),
    "copy": lambda m: m.func.vmap(lambda v: m.zeros(3).copy_(v))(m.ones(2, 3)),
    "backward": lambda m: m.func.vmap(lambda v: v.backward())(m.ones(2)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_as_torch_tells_them(name):
    torch = pytest.importorskip("torch")
    told = []
    for library in (rl, torch):
        with pytest.raises((RuntimeError, ValueError, IndexError)) as caught:
            MISTAKES[name](library)
        kinds = [k for k in (RuntimeError, ValueError, IndexError) if isinstance(caught.value, k)]
        told.append((kinds, str(caught.value).replace("<built-in method sin of type object>", "sin")))
    (ours, text), (theirs, phrase) = told
    assert ours == theirs
    end = min(40, phrase.find(". ") % len(phrase))
    assert text[:end] == phrase[:end]


def test_against_torch():
    torch = pytest.importorskip("torch")
    x = rl.randn(4, 3)
    t = torch.tensor(x.tolist())
    for f in (lambda m, v: m.vmap(m.dot, (0, None))(v, v[0]),
              lambda m, v: m.vmap(lambda a: a.softmax(0), out_dims=1)(v),
              lambda m, v: m.vmap(m.vmap(lambda a, b: a * b, (None, 0)), (0, None))(v, v[0]),
              lambda m, v: m.vmap(lambda a: m.stack([a, a * 2], 1))(v)):  # fmt: skip
        ours, theirs = f(rl, x), f(torch, t)
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert rl.allclose(ours, rl.tensor(theirs.tolist()), atol=1e-5)


def test_as_strided_counts_from_each_sample():
    """Also with an offset, which is the first sample's; the result is a view, and stays inside the sample."""
    base = rl.arange(2 * 5 * 6.0).reshape(2, 5, 6)
    x = base[1]
    rows = rl.vmap(lambda t: t.as_strided((2, 2), (2, 1), x.storage_offset() + 1))(x)
    assert rl.equal(rows, rl.stack([t[1:5].reshape(2, 2) for t in x])) and rows._base is base._base
    nested = rl.vmap(rl.vmap(lambda t: t.as_strided((3,), (2,))))(base)
    assert rl.equal(nested, base[..., ::2])
    for size, stride, offset in [((7,), (1,), None), ((6,), (1,), 31), ((2,), (1,), 0)]:
        with pytest.raises(RuntimeError, match="not supported inside of vmap"):
            rl.vmap(lambda t, s=size, d=stride, o=offset: t.as_strided(s, d, o))(x)
    with pytest.raises(RuntimeError, match="same length"):
        rl.vmap(lambda t: t.as_strided((2,), (1, 1)))(x)


def test_new_empty_strided_is_one_block_for_all_levels():
    made = rl.vmap(rl.vmap(lambda t: t.new_empty_strided((2, 3), (1, 2))))(rl.zeros(4, 5))
    assert made.shape == (4, 5, 2, 3) and made.stride() == (30, 6, 1, 2)


def test_what_leaves_as_it_came_is_the_input():
    x = rl.randn(2, 5, 3).movedim(2, 1)
    assert rl.vmap(lambda t: t, in_dims=1, out_dims=-2)(x) is x
    rows = rl.randn(5, 3)
    assert rl.vmap(rl.Tensor.contiguous)(rows) is rows
    assert rl.vmap(rl.Tensor.contiguous, in_dims=1)(rows).is_contiguous()  # samples are columns: copied
    assert rl.equal(rl.vmap(lambda t: t.t_(), in_dims=1, out_dims=1)(x), x.transpose(0, 2))


@pytest.mark.parametrize("in_dims", [(0, None, None), (None, 0, None), (0, 0, None), (0, 0, 0), (None, 0, 0)])
def test_index_fill_with_an_index_per_sample(in_dims):
    x = rl.randn(3, 4, 5) if in_dims[0] == 0 else rl.randn(4, 5)
    index = rl.tensor([[0, -1], [1, 1], [2, 0]]) if in_dims[1] == 0 else rl.tensor([0, -1])
    value = rl.tensor([7.0, 8.0, 9.0]) if in_dims[2] == 0 else 7.0
    for dim in (0, -1):
        made = rl.vmap(lambda a, i, v, d=dim: rl.index_fill(a, d, i, v), in_dims)(x, index, value)
        for k in range(3):
            a, i, v = (t[k] if d == 0 else t for t, d in zip((x, index, value), in_dims, strict=True))
            assert rl.equal(made[k], rl.index_fill(a, dim, i, v))
    with pytest.raises((IndexError, RuntimeError)):
        rl.vmap(lambda i: rl.index_fill(rl.zeros(3), 0, i, 1.0))(rl.tensor([[0], [3]]))


def test_squeeze_of_samples_without_dimensions():
    with pytest.raises(RuntimeError, match="out of range"):
        rl.vmap(lambda t: t.squeeze(1))(rl.ones(3))


ACTIVATIONS = [
    ("silu", rl.nn.functional.silu, ()),
    ("mish", rl.nn.functional.mish, ()),
    ("gelu", rl.nn.functional.gelu, ()),
    ("leaky_relu", lambda x: rl.nn.functional.leaky_relu(x, 0.1), (0.1, False)),
    ("hardtanh", rl.nn.functional.hardtanh, (-1.0, 1.0)),
    ("hardsigmoid", rl.nn.functional.hardsigmoid, ()),
    ("hardswish", rl.nn.functional.hardswish, ()),
    ("hardshrink", rl.nn.functional.hardshrink, (0.5,)),
    ("softshrink", rl.nn.functional.softshrink, (0.5,)),
    ("softplus", rl.nn.functional.softplus, (1.0, 20.0)),
    ("logit", lambda x: rl.logit(x, 0.1), (0.1,)),
]


@pytest.mark.parametrize("name, function, rest", ACTIVATIONS, ids=lambda a: a if isinstance(a, str) else "")
def test_backward_primitives_of_activations(name, function, rest):
    x = rl.tensor([-4.0, -2.0, -0.7, -0.2, 0.3, 0.95, 2.0, 25.0], requires_grad=True)
    seed = rl.linspace(1, 2, 8)
    (expected,) = rl.autograd.grad(function(x), x, seed)
    op = getattr(rl.ops.aten, name + "_backward")
    x = x.detach()
    rl.testing.assert_close(op(seed, x, *rest), expected)
    rl.testing.assert_close(rl.vmap(lambda g, t: op(g, t, *rest))(seed, x), expected)


def test_transposed_convolutions_have_a_rule():
    x, w, each = rl.randn(5, 2, 3, 6, 6), rl.randn(3, 4, 2, 2), rl.randn(5, 3, 4, 2, 2)
    transposed = lambda x, w: rl.nn.functional.conv_transpose2d(x, w, stride=2)  # noqa: E731
    general = lambda x, w: rl.convolution(x, w, None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1)  # noqa: E731
    rl._C._functorch._set_vmap_fallback_enabled(False)
    try:
        for f in (transposed, general):
            for dims, args in (((0, None), (x, w)), ((0, 0), (x, each)), ((None, 0), (x[0], each))):
                alone = [
                    f(*(a if d is None else a[i] for a, d in zip(args, dims, strict=True))) for i in range(5)
                ]
                assert rl.allclose(rl.vmap(f, dims)(*args), rl.stack(alone), atol=1e-5)
    finally:
        rl._C._functorch._set_vmap_fallback_enabled(True)


def test_gradients_of_a_convolution_by_their_primitive():
    x, w = rl.randn(2, 3, 5, 5, requires_grad=True), rl.randn(4, 3, 2, 2, requires_grad=True)
    b = rl.randn(4, requires_grad=True)
    y = rl.nn.functional.conv2d(x, w, b, padding=1)
    g = rl.randn(y.shape)
    geometry = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    found = rl.ops.aten.convolution_backward(g, x, w, [4], *geometry, [True, True, True])
    for a, expected in zip(found, rl.autograd.grad(y, (x, w, b), g), strict=True):
        assert rl.allclose(a, expected, atol=1e-5)
    assert found[0].requires_grad  # by w
    none = rl.ops.aten.convolution_backward(g, x, w, [0], *geometry, [False, True, False])
    assert none[0] is None and none[2] is None


def test_function_rules_take_lists():
    class Add(rl.autograd.Function):
        @staticmethod
        def forward(x, ys):
            return x + sum(ys)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, ys):
            assert in_dims == (0, [0, None])
            return {"sum": x + ys[0] + ys[1], "one": ys[1]}, {"sum": 0, "one": None}

    x, y = rl.randn(4, 3), rl.randn(3)
    out = rl.vmap(lambda x: Add.apply(x, [x * 2, y]))(x)
    assert rl.allclose(out["sum"], x * 3 + y)

    class Wrong(Add):
        @staticmethod
        def vmap(info, in_dims, x, ys):
            return x, (None,)

    with pytest.raises(RuntimeError, match="returned an incompatible"):
        rl.vmap(lambda x: Wrong.apply(x, [x, y]))(x)
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        rl.vmap(lambda x: Add.apply(x, ys=[y]))(x)


def test_what_runs_sample_by_sample_can_say_so():
    assert not rl._C._debug_only_are_vmap_fallback_warnings_enabled()
    rl._C._debug_only_display_vmap_fallback_warnings(True)
    try:
        with pytest.warns(UserWarning, match="There is a performance drop"):
            vmap(rl.trace)(rl.ones(2, 3, 3))
    finally:
        rl._C._debug_only_display_vmap_fallback_warnings(False)
