"""Attention layers of models that are not being trained, on nested tensors and with masks."""

import pytest

import rushlight as rl


@pytest.fixture
def attention():
    rl.manual_seed(0)
    return rl.nn.MultiheadAttention(8, 2, batch_first=True).eval()


def test_attention_of_nested_tensors(attention):
    parts = [rl.randn(3, 8), rl.randn(5, 8)]
    x = rl.nested.nested_tensor(parts)
    with rl.no_grad():
        y, weights = attention(x, x, x)
        assert y.is_nested and weights.shape == (2, 5, 5) and weights[0, 3:].abs().sum() == 0
        for t, out in zip(parts, y.unbind(), strict=True):
            rl.testing.assert_close(out, attention(t[None], t[None], t[None])[0][0])
        assert attention(x, x, x, need_weights=False)[1] is None


def test_what_nested_tensors_need(attention):
    x = rl.nested.nested_tensor([rl.randn(3, 8)])
    with pytest.raises(
        AssertionError, match="outside of its fast path.*grad is enabled and.*or biases requires_grad"
    ):
        attention(x, x, x)
    attention.train()
    with pytest.raises(AssertionError, match="outside of its fast path.*training"), rl.no_grad():
        attention(x, x, x)
    jagged = rl.nested.nested_tensor([rl.randn(3, 8)], layout=rl.jagged)
    with pytest.raises(AssertionError, match="does not support NestedTensor"), rl.no_grad():
        attention.eval()(jagged, jagged, jagged)


@pytest.mark.parametrize("need_weights", [True, False])
def test_masks_say_the_same_on_both_paths(attention, need_weights):
    x = rl.randn(3, 4, 8)
    padding = rl.tensor([[False, False, True, True], [False] * 4, [False, False, False, True]])
    causal = rl.ones(4, 4).triu(1).bool()
    each = causal.expand(6, 4, 4)
    for masks in (
        {"key_padding_mask": padding},
        {"attn_mask": causal},
        {"key_padding_mask": padding, "attn_mask": each},
    ):
        slow = attention(x, x, x, need_weights=need_weights, **masks)
        with rl.no_grad():
            quick = attention(x, x, x, need_weights=need_weights, **masks)
        rl.testing.assert_close(quick[0], slow[0].detach())
        if need_weights:
            rl.testing.assert_close(quick[1], slow[1].detach())


def test_a_sequence_that_is_all_padding(attention):
    x, padding = rl.randn(2, 3, 8), rl.tensor([[True] * 3, [False] * 3])
    with rl.no_grad():
        y = attention(x, x, x, key_padding_mask=padding, need_weights=False)[0]
    assert y[0].isnan().all() and not y[1].isnan().any()  # as in PyTorch
    rl.backends.mha.set_fastpath_enabled(False)
    try:
        with rl.no_grad():
            assert not attention(x, x, x, key_padding_mask=padding, need_weights=False)[0].isnan().any()
    finally:
        rl.backends.mha.set_fastpath_enabled(True)


def test_encoder_leaves_padding_out():
    rl.manual_seed(0)
    layer = rl.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = rl.nn.TransformerEncoder(layer, 2).eval()
    assert encoder.use_nested_tensor
    x, padding = rl.randn(2, 4, 8), rl.tensor([[False, False, True, True], [False] * 4])
    slow = encoder(x, src_key_padding_mask=padding)
    with rl.no_grad():
        quick = encoder(x, src_key_padding_mask=padding)
        rl.testing.assert_close(quick[~padding], slow[~padding].detach())
        assert (quick[padding] == 0).all()
        nested = encoder(rl.nested.nested_tensor([x[0, :2], x[1]]))
        rl.testing.assert_close(nested.to_padded_tensor(0.0), quick)
        assert not (encoder(x, src_key_padding_mask=padding.flip(1))[padding.flip(1)] == 0).all()
    plain = rl.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with rl.no_grad():
        assert not (plain(x, src_key_padding_mask=padding)[padding] == 0).any()
    assert not rl.nn.TransformerEncoder(rl.nn.TransformerEncoderLayer(8, 2, 16), 1).use_nested_tensor


@pytest.mark.filterwarnings("ignore")  # PyTorch's, that nested tensors are a prototype
def test_equal_to_pytorch():
    torch = pytest.importorskip("torch")
    if torch is rl:
        pytest.skip("needs PyTorch beside rushlight")

    def run(fw):
        fw.manual_seed(0)
        encoder = fw.nn.TransformerEncoder(
            fw.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2
        ).eval()
        x = fw.randn(2, 4, 8)
        with fw.no_grad():
            return encoder(
                x, src_key_padding_mask=fw.tensor([[False, False, True, True], [False] * 4])
            ).tolist()

    rl.testing.assert_close(rl.tensor(run(rl)), rl.tensor(run(torch)), rtol=1e-4, atol=1e-5)


def test_bias_of_another_type_where_products_come_first():
    x, w, b = (
        rl.randn(4, 3, 5, dtype=rl.float64),
        rl.randn(2, 5, dtype=rl.float64),
        rl.ones(2, dtype=rl.float16),
    )
    transposed = x.transpose(0, 1)
    rl.testing.assert_close(rl.nn.functional.linear(transposed, w, b), transposed @ w.t() + 1)
    with pytest.raises(RuntimeError, match="same dtype"):
        rl.nn.functional.linear(x, w, b)
    attention = rl.nn.MultiheadAttention(4, 2, batch_first=True, dtype=rl.float64).eval()
    attention.in_proj_bias = rl.nn.Parameter(attention.in_proj_bias.half())
    q = rl.randn(2, 3, 4, dtype=rl.float64)
    assert attention(q, q, q)[0].dtype is rl.float64


def test_gelu_in_place():
    x = rl.randn(3, requires_grad=True)
    y = x * 1
    assert rl._C._nn.gelu_(y) is y
    y.sum().backward()
    z = x.detach().requires_grad_()
    rl.nn.functional.gelu(z).sum().backward()
    rl.testing.assert_close(x.grad, z.grad)
