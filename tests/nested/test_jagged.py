"""Jagged nested tensors: sequences of different lengths one behind the other."""

import copy
import io
import pickle

import pytest

import rushlight as rl
from rushlight.nn import functional as F


def jagged(*lengths, width=3, requires_grad=False, dtype=rl.float64):
    rl.manual_seed(0)
    parts = [rl.randn(n, width, dtype=dtype) for n in lengths]
    return rl.nested.nested_tensor(parts, layout=rl.jagged, requires_grad=requires_grad), parts


def same(x, parts):
    assert x.size(0) == len(parts)
    for a, b in zip(x.unbind(), parts, strict=True):
        rl.testing.assert_close(a, b)


def test_what_it_says_of_itself():
    x, _ = jagged(2, 4)
    assert x.is_nested and x.layout is rl.jagged and x.dim() == 3 and len(x) == 2
    assert x.numel() == 18 and x.size(2) == 3 and x.dtype is rl.float64
    assert x.offsets().tolist() == [0, 2, 6] and x.lengths() is None and x.values().shape == (6, 3)
    assert not rl.ones(2).is_nested and x.is_contiguous() and not x.requires_grad
    name = str(x.size(1))
    assert name.startswith("j") and str(x.shape) == f"torch.Size([2, {name}, 3])"
    assert repr(x) == f"NestedTensor(size=(2, {name}, 3), offsets=tensor([0, 2, 6]), contiguous=True)"
    assert isinstance(x.size(1), rl.SymInt) and x.stride() == (3 * x.size(1), 3, 1)
    assert type(x).__name__ == "NestedTensor"


def test_ragged_size_is_no_number():
    j = jagged(2, 4)[0].size(1)
    other = jagged(2, 4)[0].size(1)
    assert j == j and j != other and j != 4 and j >= 2 and not j < 2 and str(2 * j) == f"2*{j}"
    with pytest.raises(ValueError, match="indeterminate"):
        bool(j > 3)
    with pytest.raises(NotImplementedError, match="not a number"):
        j + 1
    with pytest.raises((TypeError, RuntimeError, NotImplementedError)):
        rl.zeros(2, j)


def test_elementwise_with_all_it_broadcasts_with():
    x, parts = jagged(2, 4)
    same(x.sin(), [t.sin() for t in parts])
    same(2 - x * x / 3, [2 - t * t / 3 for t in parts])
    same(x > 0, [t > 0 for t in parts])
    row = rl.arange(3.0, dtype=rl.float64)
    same(x + row, [t + row for t in parts])
    each = rl.randn(2, 1, 3, dtype=rl.float64)
    same(x + each, [t + e for t, e in zip(parts, each, strict=True)])
    same(each * x, [t * e for t, e in zip(parts, each, strict=True)])
    whole = rl.randn(2, 4, 3, dtype=rl.float64)
    same(x * whole, [parts[0] * whole[0, :2], parts[1] * whole[1]])
    same(rl.where(x > 0, x, 0.0), [t.clamp(min=0) for t in parts])
    same(F.gelu(x), [F.gelu(t) for t in parts])
    y = x.clone()
    y += 1
    y.mul_(x)
    same(y, [(t + 1) * t for t in parts])
    with pytest.raises(
        RuntimeError, match="cannot call binary pointwise function add.Tensor with inputs of shapes"
    ):
        x + jagged(2, 4)[0]
    with pytest.raises(RuntimeError, match="cannot call binary pointwise"):
        x + rl.ones(2, 3)


def test_gradients_reach_what_it_was_made_of():
    a, b = rl.randn(2, 3, requires_grad=True), rl.randn(4, 3, requires_grad=True)
    x = rl.nested.as_nested_tensor([a, b], layout=rl.jagged)
    assert x.requires_grad and not x.is_leaf and x.grad_fn is not None
    (x * x).values().sum().backward()
    rl.testing.assert_close(a.grad, 2 * a.detach())
    rl.testing.assert_close(b.grad, 2 * b.detach())

    x = jagged(2, 4, requires_grad=True)[0]
    assert x.is_leaf and x.requires_grad
    y = x * 3
    y.backward(rl.ones_like(y))
    assert x.grad.is_nested and x.grad is x.grad
    rl.testing.assert_close(x.grad.values(), rl.full((6, 3), 3.0, dtype=rl.float64))
    x.grad = None
    x.unbind()[1].sum().backward()
    assert x.grad.unbind()[0].abs().sum() == 0 and x.grad.unbind()[1].sum() == 12
    (g,) = rl.autograd.grad(x.to_padded_tensor(0.0).square().sum(), x)
    rl.testing.assert_close(g.values(), 2 * x.values().detach())
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        x.backward()


def test_gradcheck_through_values():
    offsets = rl.tensor([0, 2, 5])

    def f(values, weight):
        x = rl.nested.nested_tensor_from_jagged(values, offsets)
        y = F.layer_norm(F.linear(x, weight).softmax(1), (4,))
        return y.to_padded_tensor(0.5), y.sum(1), y.mean(1)

    values = rl.randn(5, 3, dtype=rl.float64, requires_grad=True)
    weight = rl.randn(4, 3, dtype=rl.float64, requires_grad=True)
    assert rl.autograd.gradcheck(f, (values, weight))


def test_made_in_all_ways():
    x = rl.nested.nested_tensor([[1, 2, 3], [4, 5]], layout=rl.jagged)
    assert x.dtype is rl.int64 and x.values().tolist() == [1, 2, 3, 4, 5]
    t = rl.randn(3, 4, 2)
    same(rl.nested.as_nested_tensor(t, layout=rl.jagged), list(t))
    values = rl.randn(7, 2)
    by_lengths = rl.nested.nested_tensor_from_jagged(values, lengths=rl.tensor([3, 4]))
    same(by_lengths, values.split([3, 4]))
    assert by_lengths._base is values
    holes = rl.nested.nested_tensor_from_jagged(values, rl.tensor([0, 3, 7]), rl.tensor([2, 3]))
    same(holes, [values[:2], values[3:6]])
    assert not holes.is_contiguous() and holes.contiguous().values().shape == (5, 2) and holes.numel() == 10
    second = rl.nested.nested_tensor_from_jagged(values.t(), rl.tensor([0, 3, 7]), jagged_dim=2)
    assert second.shape[:2] == (2, 2)
    same(second, values.t().split([3, 4], 1))
    cut = rl.nested.narrow(t, 1, rl.tensor([0, 1, 2]), rl.tensor([2, 3, 1]), layout=rl.jagged)
    same(cut, [t[0, :2], t[1, 1:4], t[2, 2:3]])
    picked = rl.nested.masked_select(rl.tensor([[1, 2], [3, 4]]), rl.tensor([[True, False], [True, True]]))
    same(picked, [rl.tensor([1]), rl.tensor([3, 4])])


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: rl.nested.nested_tensor([], layout=rl.jagged), RuntimeError, "empty tensor list"),
        (lambda: rl.nested.nested_tensor([rl.ones(())], layout=rl.jagged), RuntimeError, "zero-dim"),
        (lambda: rl.nested.nested_tensor([rl.ones(2, 3), rl.ones(1, 2)], layout=rl.jagged), RuntimeError, "single ragged"),
        (lambda: rl.nested.nested_tensor([rl.ones(2)], layout=rl.sparse_coo), RuntimeError, "layout is unsupported"),
        (lambda: rl.nested.nested_tensor(rl.ones(2, 3)), TypeError, "Only lists"),
        (lambda: rl.nested.as_nested_tensor(3), TypeError, "Expected first argument"),
        (lambda: rl.nested.as_nested_tensor(rl.ones(3)), RuntimeError, "Expected tensor argument to have dim"),
        (lambda: rl.nested.nested_tensor_from_jagged(rl.ones(3)), RuntimeError, "At least one of offsets or lengths"),
        (lambda: rl.nested.nested_tensor_from_jagged(rl.ones(3), rl.ones(2)), RuntimeError, "1D offsets"),
        (lambda: rl.nested.nested_tensor_from_jagged(rl.ones(3), rl.tensor([0, 3]), jagged_dim=2), RuntimeError, "jagged_dim"),
        (lambda: rl.ones(3).to_padded_tensor(0), NotImplementedError, "'CPU' backend"),
        (lambda: jagged(1, 2)[0].cumsum(1), NotImplementedError, "aten.cumsum"),
        (lambda: jagged(1, 2)[0].index_fill(1, rl.tensor([0]), 1.0), NotImplementedError, "aten.index_fill"),
        (lambda: jagged(1, 2)[0].tril(), NotImplementedError, "aten.tril"),
        (lambda: jagged(1, 2)[0].scatter_(1, rl.zeros(2, 1, 3, dtype=rl.int64), 1.0), NotImplementedError, "aten.scatter_"),
        (lambda: jagged(1, 2)[0].transpose(0, 1), ValueError, "batch dimension"),
        (lambda: jagged(1, 2)[0].sum(0), RuntimeError, "reducing along the batch dimension but not the ragged"),
        (lambda: jagged(1, 2)[0].softmax(0), RuntimeError, "across the batch dimension"),
        (lambda: jagged(1, 2)[0].chunk(2, 1), RuntimeError, "not supported for NestedTensor on ragged dim"),
        (lambda: jagged(1, 2)[0].reshape(6, 3), RuntimeError, "cannot view shape"),
        (lambda: jagged(1, 2)[0].numpy(), RuntimeError, "not supported for tensor subclasses"),
        (lambda: jagged(1, 2)[0].unbind(1), RuntimeError, "only supported for NestedTensor on dim=0"),
        (lambda: jagged(1, 2)[0][3], IndexError, "out of bounds"),
        (lambda: jagged(1, 2)[0].size(3), IndexError, "Dimension out of range"),
        (lambda: jagged(1, 2)[0] * jagged(1, 2)[0].size(1), RuntimeError, "invalid argument"),
    ],
)  # fmt: skip
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("offsets", [[0, 9, 3], [0, -4, 3], [5, 3, 1], [0, 2, 900]])
def test_offsets_that_lead_nowhere(offsets):
    x = rl.nested.nested_tensor_from_jagged(rl.ones(3, 2), rl.tensor(offsets))
    for use in (
        lambda: x.unbind(),
        lambda: x.to_padded_tensor(0.0),
        lambda: x + rl.ones(2, 1, 2),
        lambda: x.softmax(1),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            use()


def test_views():
    x, parts = jagged(2, 4, width=6)
    same(x.transpose(1, 2), [t.t() for t in parts])
    same(x.view(2, -1, 3, 2), [t.view(-1, 3, 2) for t in parts])
    same(
        x.reshape(x.size(0), x.size(1), 3, 2).transpose(1, 2),
        [t.view(-1, 3, 2).transpose(0, 1) for t in parts],
    )
    same(x.unflatten(-1, (2, 3)).flatten(2), parts)
    for i, part in enumerate(x.chunk(3, dim=-1)):
        same(part, [t.chunk(3, -1)[i] for t in parts])
    for i, part in enumerate(x.split([1, 5], -1)):
        same(part, [t.split([1, 5], -1)[i] for t in parts])
    same(x.unsqueeze(1).squeeze(1), parts)
    same(x.permute(0, 2, 1), [t.t() for t in parts])
    same(x[..., 1:3], [t[:, 1:3] for t in parts])
    same(x.select(2, 1), [t[:, 1] for t in parts])
    rl.testing.assert_close(x[1], parts[1])
    rl.testing.assert_close(x[1, 2:, 0], parts[1][2:, 0])
    same(rl.cat([x, x + 1], -1), [rl.cat([t, t + 1], -1) for t in parts])
    same(rl.stack([x, x], 2), [rl.stack([t, t], 1) for t in parts])
    assert x.chunk(2)[1].size(0) == 1
    x[0].zero_()
    assert x.values()[:2].abs().sum() == 0
    view = x.view(2, -1, 3, 2)
    assert view._is_view() and view._base is x._base


def test_reductions():
    x, parts = jagged(2, 4)
    rl.testing.assert_close(x.sum(), sum(t.sum() for t in parts))
    for name in ("sum", "mean", "amax", "amin", "prod"):
        rl.testing.assert_close(getattr(x, name)(1), rl.stack([getattr(t, name)(0) for t in parts]))
        same(getattr(x, name)(2), [getattr(t, name)(1) for t in parts])
    rl.testing.assert_close(x.sum((0, 1)), rl.cat(parts).sum(0))
    assert x.sum(1, keepdim=True).shape == (2, 1, 3)
    values, where = x.max(1)
    rl.testing.assert_close(values, rl.stack([t.max(0).values for t in parts]))
    assert where.tolist() == [t.argmax(0).tolist() for t in parts]
    same(x.softmax(1), [t.softmax(0) for t in parts])
    same(x.log_softmax(-1), [t.log_softmax(-1) for t in parts])
    assert (x == x).all() and not (x > 100).any()


def test_padding_there_and_back():
    x, parts = jagged(2, 4)
    padded = rl.nested.to_padded_tensor(x, 7.0)
    assert padded.shape == (2, 4, 3) and (padded[0, 2:] == 7).all()
    rl.testing.assert_close(padded[1], parts[1])
    assert x.to_padded_tensor(0.0, (2, 5, 4)).shape == (2, 5, 4)
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        x.to_padded_tensor(0.0, (2, 3, 3))
    from rushlight.nested._internal.nested_tensor import nested_from_padded

    back = nested_from_padded(padded, x.offsets())
    assert back.size() == x.size()
    same(back, parts)


def test_layers():
    x, parts = jagged(2, 4, width=6)
    linear, norm = rl.nn.Linear(6, 4).double(), rl.nn.LayerNorm(6).double()
    same(linear(x), [linear(t) for t in parts])
    same(norm(x), [norm(t) for t in parts])
    same(rl.nn.Dropout(0.5).eval()(x), parts)
    same(rl.nn.Dropout(1.0)(x), [0 * t for t in parts])
    other = rl.randn(2, 6, 5, dtype=rl.float64)
    same(x @ other[0], [t @ other[0] for t in parts])
    same(rl.bmm(x, other), [t @ o for t, o in zip(parts, other, strict=True)])
    rl.testing.assert_close(x.transpose(1, 2) @ x, rl.stack([t.t() @ t for t in parts]))
    words = rl.nested.nested_tensor([[1, 2, 3], [4, 5]], layout=rl.jagged)
    table = rl.nn.Embedding(6, 2)
    y = table(words)
    same(y, [table(t) for t in words.unbind()])
    y.sum().backward()
    assert table.weight.grad.sum() == 10


@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_of_sequences(is_causal):
    x, parts = jagged(3, 5, width=24)

    def heads(t):
        return t.unflatten(-1, (2, 4)).transpose(-3, -2)

    q, k, v = (heads(t) for t in x.chunk(3, -1))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    assert y.shape[:2] == (2, 2) and y.size(2) == x.size(1)
    expected = [
        F.scaled_dot_product_attention(*(heads(t) for t in p.chunk(3, -1)), is_causal=is_causal)
        for p in parts
    ]
    same(y, expected)
    joined = y.transpose(1, 2).flatten(2)
    same(joined, [t.transpose(0, 1).flatten(1) for t in expected])
    with pytest.raises(ValueError, match="attn_mask"):
        F.scaled_dot_product_attention(q, k, v, attn_mask=rl.ones(5, 5))


def test_training_equals_padding_and_a_mask():
    rl.manual_seed(1)
    model = rl.nn.Sequential(rl.nn.Linear(3, 8), rl.nn.GELU(), rl.nn.LayerNorm(8), rl.nn.Linear(8, 1))
    parts = [rl.randn(n, 3) for n in (2, 5, 1)]
    x = rl.nested.nested_tensor(parts, layout=rl.jagged)
    model(x).mean(1).sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    sum(model(t).mean(0).sum() for t in parts).backward()
    for g, p in zip(found, model.parameters(), strict=True):
        rl.testing.assert_close(g, p.grad)


def test_types_and_copies():
    x, parts = jagged(2, 4)
    assert x.to(rl.float32).dtype is rl.float32 and x.float().dtype is rl.float32 and x.to(rl.float64) is x
    y = x.clone()
    y.zero_()
    same(x, parts)
    assert rl.zeros_like(x).size() == x.size() and x.detach().size() == x.size()
    z = copy.deepcopy(x.requires_grad_())
    assert z.requires_grad and z.is_leaf
    same(z.detach(), parts)
    y.copy_(x.detach())
    same(y, parts)
    assert rl.equal(y, y.clone()) and y.is_same_size(x) and not y.is_same_size(jagged(2, 4)[0])
    x[rl.tensor([0, 1]), rl.tensor([1, 3])].sum().backward()
    assert x.grad.values().sum() == 6


@pytest.mark.parametrize("weights_only", [True, False])
def test_files(weights_only):
    x = jagged(2, 4, requires_grad=True)[0]
    holes = rl.nested.nested_tensor_from_jagged(rl.randn(7, 2), rl.tensor([0, 3, 7]), rl.tensor([2, 3]))
    file = io.BytesIO()
    rl.save({"x": x, "holes": holes}, file)
    file.seek(0)
    loaded = rl.load(file, weights_only=weights_only)
    assert loaded["x"].requires_grad and loaded["x"].layout is rl.jagged
    same(loaded["x"].detach(), x.detach().unbind())
    same(loaded["holes"], holes.unbind())
    same(pickle.loads(pickle.dumps(x)).detach(), x.detach().unbind())


def test_files_that_lie():
    from rushlight import _utils

    good = {"values": rl.ones(3, 2), "offsets": rl.tensor([0, 1, 3]), "lengths": None, "_ragged_idx": 1}
    assert _utils._rebuild_njt(good).numel() == 6
    for wrong in (
        {"offsets": rl.tensor([0, 1, 4])}, {"offsets": rl.tensor([0, -1, 3])}, {"offsets": rl.tensor([0.0, 3.0])},
        {"_ragged_idx": 3}, {"_ragged_idx": "x"}, {"lengths": rl.tensor([1])}, {"offsets": rl.tensor([], dtype=rl.int64)},
        {"lengths": rl.tensor([2, 2**62])}, {"values": 3},
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            _utils._rebuild_njt({**good, **wrong})
    with pytest.raises(RuntimeError, match="does not lie in a buffer"):
        _utils._rebuild_nested_tensor(rl.ones(4), rl.tensor([[2, 2]]), rl.tensor([[2, 1]]), rl.tensor([1]))


def test_functions_of_ones_own():
    class Scaled(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, by):
            ctx.save_for_backward(x)
            ctx.by = by
            return x * by, x + 1

        @staticmethod
        def backward(ctx, first, second):
            (x,) = ctx.saved_tensors
            assert x.is_nested and first.is_nested and second.is_nested
            return first * ctx.by + second, None

    x = jagged(2, 4, requires_grad=True)[0]
    y, _ = Scaled.apply(x, 5)
    y.backward(rl.ones_like(y))
    assert (x.grad.values() == 5).all()


@pytest.mark.filterwarnings("ignore")  # PyTorch's, that nested tensors are a prototype
def test_files_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    if torch is rl:
        pytest.skip("needs PyTorch beside rushlight")
    parts = [torch.arange(6.0).view(2, 3), torch.arange(3.0).view(1, 3)]
    for layout in ("jagged", "strided"):
        path = tmp_path / f"{layout}.pt"
        torch.save(torch.nested.nested_tensor(parts, layout=getattr(torch, layout)), path)
        loaded = rl.load(path, weights_only=True)
        assert loaded.layout is getattr(rl, layout) and loaded.is_nested
        same(loaded, [rl.tensor(t.tolist()) for t in parts])
        rl.save(loaded, path)
        back = torch.load(path, weights_only=True)
        assert back.is_nested and [t.tolist() for t in back.unbind()] == [t.tolist() for t in parts]


@pytest.mark.parametrize("layout", [rl.jagged, rl.strided])
def test_parameters_and_optimizers(layout):
    parts = [rl.ones(2, 3), rl.full((4, 3), 2.0)]
    model = rl.nn.Module()
    model.p = rl.nn.Parameter(rl.nested.nested_tensor(parts, layout=layout))
    plain = rl.nn.Parameter(rl.cat(parts))
    assert isinstance(model.p, rl.nn.Parameter) and len(list(model.parameters())) == 1
    for make in (rl.optim.SGD, rl.optim.AdamW, rl.optim.RMSprop):
        for p in (model.p, plain):
            optimizer = make([p], lr=0.1)
            (p * p).values().sum().backward() if p.is_nested else (p * p).sum().backward()
            rl.nn.utils.clip_grad_norm_([p], 1.0)
            optimizer.step()
            optimizer.zero_grad()
        rl.testing.assert_close(model.p.detach().values().reshape(6, 3), plain.detach())


@pytest.mark.parametrize("layout", [rl.jagged, rl.strided])
def test_nothing_reads_what_only_shows_a_shape(layout):
    x = rl.nested.nested_tensor([rl.ones(2, 3), rl.ones(1, 3)], layout=layout)
    for read in (
        lambda: x.as_subclass(rl.Tensor), lambda: x.numpy(), lambda: x.tolist(), lambda: x.untyped_storage(), lambda: x.item(),
        lambda: bool(x), lambda: x.__dlpack__(), lambda: x.as_strided((1,), (1,)), lambda: rl.ones(3)[x.long()],
    ):  # fmt: skip
        with pytest.raises((RuntimeError, TypeError, NotImplementedError, BufferError)):
            read()
    assert x.nbytes == 36 and x.data_ptr() == x.values().data_ptr()
    g = rl.func.grad(lambda t: (t * t).values().sum())(x)
    assert g.is_nested and not g.requires_grad and g.values().sum() == 18
