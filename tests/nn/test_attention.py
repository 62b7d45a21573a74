"""scaled_dot_product_attention against a plain formula: sizes around the kernel's blocks, masks, layouts, gradients."""

import numpy as np
import pytest

import rushlight as rl
import rushlight.nn.functional as F

INF = float("inf")


def plain(q, k, v, mask=None):
    """The formula itself, in float64, with ops that are differentiable on their own."""
    s = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, -INF) if mask.dtype == rl.bool else s + mask
    e = (s - s.amax(-1, keepdim=True).clamp(min=-1e30)).exp()
    total = e.sum(-1, keepdim=True)
    return e / rl.where(total == 0, 1.0, total) @ v


SHAPES = [  # (N, H, queries, keys, width, width of values)
    (2, 3, 12, 32, 32, 32),
    (1, 2, 13, 33, 16, 16),
    (1, 1, 1, 1, 1, 1),
    (2, 2, 50, 70, 33, 17),
    (1, 4, 61, 300, 80, 80),
    (1, 2, 300, 20, 64, 5),
    (3, 1, 7, 600, 128, 40),
    (2, 3, 1, 37, 64, 64),
    (1, 2, 2, 33, 40, 100),
    (1, 1, 4, 17, 7, 150),
    (2, 1, 3, 1, 16, 1),
    (2, 2, 5, 45, 20, 36),
    (1, 3, 16, 29, 24, 24),
    (1, 2, 24, 40, 64, 48),
    (1, 2, 32, 65, 80, 80),
    (1, 2, 33, 65, 8, 8),
]
MASKS = {
    "none": lambda n, h, m, k: None,
    "boolean": lambda n, h, m, k: rl.rand(m, k) > 0.4,
    "padding": lambda n, h, m, k: rl.rand(n, 1, 1, k) > 0.3,
    "additive": lambda n, h, m, k: rl.randn(n, h, m, k),
    "infinities": lambda n, h, m, k: rl.zeros(h, m, k).masked_fill(rl.rand(h, m, k) > 0.5, -INF),
    "a number a row": lambda n, h, m, k: rl.randn(m, 1),
}


def check(q, k, v, mask=None, causal=False):
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    seen = rl.ones(q.size(2), k.size(2), dtype=rl.bool).tril() if causal else mask
    seen = seen.double() if seen is not None and seen.is_floating_point() else seen
    y, want = F.scaled_dot_product_attention(*inputs, attn_mask=mask, is_causal=causal), plain(*wide, seen)
    g = rl.randn(*y.shape)
    y.backward(g)
    want.backward(g.double())
    for got, expected in [(y, want), *((a.grad, b.grad) for a, b in zip(inputs, wide, strict=True))]:
        scale = 1 + float(expected.detach().abs().max())
        error = float((got.detach().double() - expected.detach()).abs().max()) / scale
        assert error < (1e-5 if q.dtype == rl.float32 else 1e-12), (tuple(q.shape), tuple(k.shape), error)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64])
@pytest.mark.parametrize("name", MASKS)
def test_masks(name, dtype):
    rl.manual_seed(0)
    for n, h, m, k, e, f in SHAPES:
        mask = MASKS[name](n, h, m, k)
        mask = mask.to(dtype) if mask is not None and mask.is_floating_point() else mask
        check(*(rl.randn(n, h, *s, dtype=dtype) for s in ((m, e), (k, e), (k, f))), mask)


@pytest.mark.parametrize("length", [1, 11, 12, 13, 32, 49, 96, 97, 400])
def test_causal(length):
    rl.manual_seed(0)
    check(*(rl.randn(2, 2, length, 24) for _ in range(3)), causal=True)


@pytest.mark.parametrize("dtype", [rl.float32, rl.float64, rl.bfloat16, rl.float16])
@pytest.mark.parametrize("queries", [1, 2, 3, 4, 5, 9, 17, 40])
@pytest.mark.parametrize("name", ["none", "boolean", "padding", "additive", "causal"])
def test_shared_heads(name, queries, dtype):
    """Several heads of queries on one of keys and values; fp16 and bf16; the same bits for every number of threads."""
    rl.manual_seed(0)
    before = rl.get_num_threads()
    for share in (1, 2, 4):
        q = rl.randn(2, 2 * share, queries, 24).to(dtype)
        k, v = (rl.randn(2, 2, 37, e).to(dtype) for e in (24, 20))
        mask = MASKS[name](2, 2 * share, queries, 37) if name != "causal" else None
        mask = mask.to(dtype) if mask is not None and mask.is_floating_point() else mask
        seen = rl.ones(queries, 37, dtype=rl.bool).tril() if name == "causal" else mask
        seen = seen.double() if seen is not None and seen.is_floating_point() else seen
        want = plain(q.double(), *(t.double().repeat_interleave(share, 1) for t in (k, v)), seen)
        given = {"attn_mask": mask, "is_causal": name == "causal", "enable_gqa": True}
        y = F.scaled_dot_product_attention(q, k, v, **given)
        assert y.dtype == dtype
        tolerance = {rl.float32: 1e-5, rl.float64: 1e-13, rl.bfloat16: 2e-2, rl.float16: 2e-3}[dtype]
        assert float((y.double() - want).abs().max()) < tolerance
        for n in (1, 3):
            rl.set_num_threads(n)
            assert rl.equal(F.scaled_dot_product_attention(q, k, v, **given), y)
        rl.set_num_threads(before)
    if dtype != rl.float64:
        return
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    F.scaled_dot_product_attention(*leaves, **given).sum().backward()
    wide = [t.clone().requires_grad_() for t in (q, k, v)]
    plain(wide[0], *(t.repeat_interleave(share, 1) for t in wide[1:]), seen).sum().backward()
    for a, b in zip(leaves, wide, strict=True):
        assert float((a.grad - b.grad).abs().max()) < 1e-12


def test_heads_in_place():
    """Heads that lie side by side, as a projection leaves them: nothing is copied, and the result lies so too."""
    rl.manual_seed(0)
    q, k, v = (t.unflatten(-1, (4, 16)).transpose(1, 2) for t in rl.randn(2, 40, 192).chunk(3, -1))
    check(q, k, v)
    y = F.scaled_dot_product_attention(q, k, v)
    assert y.transpose(1, 2).is_contiguous()
    assert F.scaled_dot_product_attention(q.contiguous(), k, v).is_contiguous()


def test_a_query_that_sees_nothing_gets_nothing():
    q = rl.randn(1, 1, 3, 4, requires_grad=True)
    mask = rl.tensor([[True, False], [False, False], [True, True]])
    y = F.scaled_dot_product_attention(q, q[:, :, :2], q[:, :, :2], mask)
    assert not y[0, 0, 1].any() and y[0, 0, 0].any()
    y.sum().backward()
    assert not q.grad.isnan().any()


def test_second_derivative_with_a_mask():
    q, k, v = (rl.randn(1, 2, 3, 4, dtype=rl.float64, requires_grad=True) for _ in range(3))
    mask = rl.tensor([[True, False, True], [False, False, False], [True, True, True]])
    attend = lambda a, b, c: F.scaled_dot_product_attention(a, b, c, mask)  # noqa: E731
    assert rl.autograd.gradgradcheck(attend, (q, k, v))


def test_mask_with_a_gradient():
    mask = rl.randn(3, 3, requires_grad=True)
    q = rl.randn(1, 1, 3, 4)
    F.scaled_dot_product_attention(q, q, q, mask).square().sum().backward()
    assert mask.grad.any()


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_multihead_layouts(batch_first, padded):
    """The path without weights gives what the path with weights does, for either order of batch and length."""
    rl.manual_seed(0)
    net = rl.nn.MultiheadAttention(24, 4, batch_first=batch_first).eval()
    x = rl.randn(3, 10, 24) if batch_first else rl.randn(10, 3, 24)
    padding = (rl.arange(10)[None] >= rl.tensor([10, 7, 4])[:, None]) if padded else None
    a = net(x, x, x, key_padding_mask=padding, need_weights=False)[0]
    b = net(x, x, x, key_padding_mask=padding)[0]
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("dtype", [rl.float16, rl.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_scores_of_half_types_are_not_rounded(dtype, causal):
    """Three dimensions take another way than the kernel's four; large scores show what is lost there."""
    rl.manual_seed(0)
    q, k, v = (rl.empty(4, n, 8).uniform_(-9, 9).to(dtype) for n in (3, 6, 6))
    ours = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    assert ours.dtype == dtype
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
    assert ((ours.double() - exact).abs() <= 9 * rl.finfo(dtype).eps).all()


@pytest.mark.parametrize("rows, columns", [(4, 4), (3, 5)])
def test_causal_biases(rows, columns):
    from rushlight.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left

    q, k = rl.randn(1, 2, rows, 8), rl.randn(1, 2, columns, 8)
    for make, variant, shift in (
        (causal_upper_left, CausalVariant.UPPER_LEFT, 0),
        (causal_lower_right, CausalVariant.LOWER_RIGHT, columns - rows),
    ):
        bias, mask = make(rows, columns), rl.ones(rows, columns, dtype=rl.bool).tril(shift)
        assert isinstance(bias, CausalBias) and bias.variant is variant
        assert type(bias._materialize()) is rl.Tensor and rl.equal(bias._materialize(), mask)
        expected = F.scaled_dot_product_attention(q, k, k, mask)
        assert rl.allclose(F.scaled_dot_product_attention(q, k, k, bias), expected, atol=1e-6)
        assert rl.allclose(F.scaled_dot_product_attention(q, k, k, attn_mask=bias), expected, atol=1e-6)
        with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
            F.scaled_dot_product_attention(q, k, k, bias, is_causal=True)
    with pytest.warns(UserWarning, match="will produce NaNs"):
        causal_lower_right(5, 3)
