"""Nested tensors of layout torch.strided: tensors of any sizes in one buffer."""

import io

import pytest

import rushlight as rl
from rushlight.nn import functional as F


def nested(*sizes, **options):
    rl.manual_seed(0)
    parts = [rl.randn(size, dtype=rl.float64) for size in sizes]
    return rl.nested.nested_tensor(parts, **options), parts


def same(x, parts):
    assert x.is_nested and len(x.unbind()) == len(parts)
    for a, b in zip(x.unbind(), parts, strict=True):
        rl.testing.assert_close(a, b)


def test_what_it_says_of_itself():
    x, _ = nested((2, 3), (4, 3))
    assert x.is_nested and x.layout is rl.strided and x.dim() == 3 and x.numel() == 18
    assert x.size(0) == 2 and x.size(-1) == 3
    assert x._nested_tensor_size().tolist() == [[2, 3], [4, 3]]
    assert x._nested_tensor_strides().tolist() == [[3, 1], [3, 1]]
    assert x._nested_tensor_storage_offsets().tolist() == [0, 6]
    assert rl.nested.nested_tensor([]).dim() == 1 and rl.nested.nested_tensor([]).numel() == 0
    with pytest.raises(RuntimeError, match="Given dimension 1 is irregular and does not have a size"):
        x.size(1)
    for ask in (lambda: x.shape, lambda: x.size(), lambda: len(x)):
        with pytest.raises(RuntimeError, match="NestedTensorImpl doesn't support sizes"):
            ask()
    with pytest.raises(RuntimeError, match="NestedTensorImpl doesn't support strides"):
        x.stride()
    assert (
        repr(rl.nested.nested_tensor([[1.0], [2.0, 3.0]]))
        == "nested_tensor([\n  tensor([1.]),\n  tensor([2., 3.])\n])"
    )


def test_lists_of_numbers_and_types():
    x = rl.nested.nested_tensor([[1, 2], [3]], dtype=rl.float32)
    assert x.dtype is rl.float32 and [t.tolist() for t in x.unbind()] == [[1, 2], [3]]
    with pytest.raises(
        RuntimeError, match="Found dimension 1 for Tensor at index 1 and dimension 0 for Tensor at index 0"
    ):
        rl.nested.nested_tensor([rl.ones(()), rl.ones(2)])
    a = rl.ones(2, requires_grad=True)
    assert not rl.nested.nested_tensor([a]).requires_grad and rl.nested.as_nested_tensor([a]).requires_grad


def test_elementwise():
    x, parts = nested((2, 3), (4, 1))
    same(x.relu(), [t.relu() for t in parts])
    same(1 - 2 * x + x * x, [1 - 2 * t + t * t for t in parts])
    same(x >= 0, [t >= 0 for t in parts])
    same(x.masked_fill(x > 0, 0.0), [t.clamp(max=0) for t in parts])
    y = x.clone()
    y += x
    y.div_(2)
    same(y, parts)
    transposed = x.transpose(1, 2)
    assert not transposed.is_contiguous() and transposed.contiguous().is_contiguous()
    same(transposed / 2, [t.t() / 2 for t in parts])
    with pytest.raises(RuntimeError, match="NestedTensor must be contiguous to get buffer"):
        transposed.sin()
    with pytest.raises(RuntimeError, match="but got a nested self and non-nested other"):
        x + rl.ones(3)
    with pytest.raises(RuntimeError, match="do not mix"):
        x + rl.nested.nested_tensor([[1.0]], layout=rl.jagged)
    with pytest.raises(NotImplementedError, match="'NestedTensorCPU' backend"):
        x.sort()


def test_gradients():
    a, b = rl.randn(2, 3, requires_grad=True), rl.randn(4, 2, requires_grad=True)
    x = rl.nested.as_nested_tensor([a, b])
    (x * x).to_padded_tensor(1.0).sum().backward()
    rl.testing.assert_close(a.grad, 2 * a.detach())
    rl.testing.assert_close(b.grad, 2 * b.detach())
    leaf = nested((2, 3), (4, 3), requires_grad=True)[0]
    transposed = leaf.transpose(1, 2)
    transposed.backward(
        rl.nested.nested_tensor([rl.full((3, 2), 2.0, dtype=rl.float64), rl.ones(3, 4, dtype=rl.float64)])
    )
    same(leaf.grad, [rl.full((2, 3), 2.0, dtype=rl.float64), rl.ones(4, 3, dtype=rl.float64)])
    assert leaf.is_leaf and not transposed.is_leaf
    seen = []
    leaf.register_hook(seen.append)
    leaf[0].sum().backward()
    assert seen[0].is_nested
    (g,) = rl.autograd.grad(leaf.softmax(-1)[1].square().sum(), leaf)
    assert g.unbind()[0].abs().sum() == 0


def test_gradcheck():
    def f(a, b, w):
        x = rl.nested.as_nested_tensor([a, b])
        y = F.layer_norm(F.linear(x, w), (2,))
        return rl.bmm(y, y.transpose(1, 2)).contiguous().to_padded_tensor(0.0), y.sum(
            -1, keepdim=True
        ).values()

    sizes = ((2, 3), (3, 3), (2, 3))
    assert rl.autograd.gradcheck(f, [rl.randn(s, dtype=rl.float64, requires_grad=True) for s in sizes])


def test_views():
    x, parts = nested((2, 6), (4, 6))
    same(x.view(2, -1, 2, 3).transpose(1, 2), [t.view(-1, 2, 3).transpose(0, 1) for t in parts])
    same(x.reshape(2, -1, 3, 2), [t.view(-1, 3, 2) for t in parts])
    view = x.transpose(1, 2).requires_grad_()
    assert view.is_leaf and not x.requires_grad
    for i, chunk in enumerate(x.chunk(2, -1)):
        same(chunk, [t.chunk(2, -1)[i] for t in parts])
    for i, part in enumerate(x.split_with_sizes([1, 5], -1)):
        same(part, [t.split([1, 5], -1)[i] for t in parts])
    same(x.unsqueeze(1).squeeze(1), parts)
    same(x.narrow(0, 1, 1), parts[1:])
    same(x.select(2, -1), [t[:, -1] for t in parts])
    same(rl.cat([x, x]), parts * 2)
    same(rl.cat([x, x], -1), [rl.cat([t, t], -1) for t in parts])
    rl.testing.assert_close(x[1, 2:, 1], parts[1][2:, 1])
    x[0].fill_(5.0)
    assert (x.values()[:12] == 5).all()
    with pytest.raises(NotImplementedError):
        x[:]
    with pytest.raises(RuntimeError, match="cannot change or infer the implicit batch dimension"):
        x.view(-1, 6)
    with pytest.raises(RuntimeError, match="Nested tensor dimension 0 cannot be transposed"):
        x.transpose(0, 1)


def test_products_and_layers():
    x, parts = nested((2, 4), (3, 4))
    w, b = rl.randn(5, 4, dtype=rl.float64), rl.randn(5, dtype=rl.float64)
    same(F.linear(x, w, b), [F.linear(t, w, b) for t in parts])
    same(x @ x.transpose(1, 2), [t @ t.t() for t in parts])
    same(rl.bmm(x, w.t().expand(2, 4, 5)), [t @ w.t() for t in parts])
    same(rl.nn.LayerNorm(4).double()(x), [F.layer_norm(t, (4,)) for t in parts])
    same(F.softmax(x, 1), [t.softmax(0) for t in parts])
    same(F.scaled_dot_product_attention(x, x, x), [F.scaled_dot_product_attention(t, t, t) for t in parts])
    with pytest.raises(RuntimeError, match="not supported when is_causal=True"):
        F.scaled_dot_product_attention(x, x, x, is_causal=True)
    words = rl.nested.nested_tensor([[1, 2], [0]])
    table = rl.nn.Embedding(3, 2)
    same(table(words).detach(), [table(t).detach() for t in words.unbind()])


def test_padding_and_masks():
    x, parts = nested((2, 3), (4, 2))
    padded = x.to_padded_tensor(-1.0)
    assert padded.shape == (2, 4, 3) and (padded[0, 2:] == -1).all() and (padded[1, :, 2:] == -1).all()
    rl.testing.assert_close(padded[1, :, :2], parts[1])
    t, mask = rl.randn(2, 4, 3), rl.tensor([[True, True, False, False], [True] * 4])
    same(rl._nested_tensor_from_mask(t, mask), [t[0, :2], t[1]])
    assert rl._nested_tensor_from_mask_left_aligned(t, mask)
    assert not rl._nested_tensor_from_mask_left_aligned(t, ~mask)
    with pytest.raises(RuntimeError, match="left-aligned"):
        rl._nested_tensor_from_mask(t, ~mask)
    with pytest.raises(RuntimeError, match="Bool"):
        rl._nested_tensor_from_mask(t, mask.float())


def test_same_sizes():
    x, y = nested((2, 3), (4, 3))[0], nested((2, 3), (4, 3))[0]
    assert x.is_same_size(y) and not x.is_same_size(nested((2, 3), (3, 3))[0])
    with pytest.raises(RuntimeError, match="Expected both self and other to be nested tensors"):
        rl.ones(2).is_same_size(x)
    assert rl.equal(x, y)
    x.copy_(y * 2)
    assert not rl.equal(x, y)


@pytest.mark.parametrize("weights_only", [True, False])
def test_files(weights_only):
    x, parts = nested((2, 3), (4, 1))
    file = io.BytesIO()
    rl.save([x, x.transpose(1, 2)], file)
    file.seek(0)
    loaded, transposed = rl.load(file, weights_only=weights_only)
    same(loaded, parts)
    same(transposed, [t.t() for t in parts])
    assert not transposed.is_contiguous()


def test_vmap_runs_on_each():
    x, parts = nested((2, 3), (4, 3))
    same(rl.vmap(lambda t: t.sin() @ t.t())(x), [t.sin() @ t.t() for t in parts])
    w = rl.randn(2, 3, 5, dtype=rl.float64)
    same(rl.vmap(lambda t, u: t @ u)(x, w), [t @ u for t, u in zip(parts, w, strict=True)])
    same(rl.vmap(lambda t, u: t @ u, in_dims=(0, None))(x, w[0]), [t @ w[0] for t in parts])
    assert rl.vmap(lambda t: t.is_nested or t)(x).is_nested
    with pytest.raises(RuntimeError, match="Nested tensors can only be vmapped over dim=0"):
        rl.vmap(lambda t: t, in_dims=2)(x)
    with pytest.raises(RuntimeError, match="Nested tensors can only be vmapped over dim=0"):
        rl.vmap(lambda t: t, out_dims=1)(x)
    with pytest.raises(RuntimeError, match="Only one level of vmap is supported"):
        rl.vmap(rl.vmap(lambda t: t))(x)
    rl.vmap(rl.sin)(rl.ones(2))  # nothing is left behind by the error
