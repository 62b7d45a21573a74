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
]
MASKS = {
    "none": lambda n, h, m, k: None,
    "boolean": lambda n, h, m, k: rl.rand(m, k) > 0.4,
    "padding": lambda n, h, m, k: rl.rand(n, 1, 1, k) > 0.3,
    "numbers": lambda n, h, m, k: rl.randn(n, h, m, k),
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
    """The way without weights gives what the way with weights does, for either order of batch and length."""
    rl.manual_seed(0)
    net = rl.nn.MultiheadAttention(24, 4, batch_first=batch_first).eval()
    x = rl.randn(3, 10, 24) if batch_first else rl.randn(10, 3, 24)
    padding = (rl.arange(10)[None] >= rl.tensor([10, 7, 4])[:, None]) if padded else None
    a = net(x, x, x, key_padding_mask=padding, need_weights=False)[0]
    b = net(x, x, x, key_padding_mask=padding)[0]
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-6)
