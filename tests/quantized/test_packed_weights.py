"""Linear layers and recurrent cells with weights packed ahead."""

import pytest

import rushlight as rl
from rushlight._quantized import _legacy

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_eight_bits():
    weight = rl.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
    q, offsets, scale, zero_point = rl.fbgemm_linear_quantize_weight(weight)
    assert q.dtype is rl.int8 and scale == pytest.approx(5 / 255) and zero_point == -26
    assert offsets.tolist() == (q.int().sum(1) - 3 * zero_point).tolist()
    packed = rl.fbgemm_pack_quantized_matrix(q)
    x, bias = rl.tensor([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]]), rl.tensor([0.5, -0.5])
    for linear in (rl.fbgemm_linear_int8_weight, rl.fbgemm_linear_int8_weight_fp32_activation):
        got = linear(x, q, packed, offsets, scale, zero_point, bias)
        assert got.dtype is rl.float32
        rl.testing.assert_close(got, x @ weight.t() + bias, rtol=0, atol=0.06)
    with pytest.raises(RuntimeError, match="do not fit"):
        rl.fbgemm_linear_int8_weight(x[:, :2], q, packed, offsets, scale, zero_point, bias)
    with pytest.raises(RuntimeError, match="packed weights"):
        rl.fbgemm_linear_int8_weight(x, q, packed[:3], offsets, scale, zero_point, bias)
    with pytest.raises(RuntimeError, match="bias"):
        rl.fbgemm_linear_int8_weight(x, q, packed, offsets, scale, zero_point, bias[:1])


def test_sixteen_bits():
    weight, x, bias = rl.randn(4, 3), rl.randn(2, 3), rl.randn(4)
    packed = rl.fbgemm_pack_gemm_matrix_fp16(weight)
    for linear in (rl.fbgemm_linear_fp16_weight, rl.fbgemm_linear_fp16_weight_fp32_activation):
        rl.testing.assert_close(linear(x, packed, bias), x @ weight.half().float().t() + bias)
    huge = rl.fbgemm_pack_gemm_matrix_fp16(rl.full((1, 1), 1e6))
    assert rl.fbgemm_linear_fp16_weight(rl.ones(1, 1), huge, None).item() == 65504.0
    with pytest.raises(RuntimeError, match="columns"):
        rl.fbgemm_linear_fp16_weight(rl.ones(1, 5), packed, bias)
    assert rl._saturate_weight_to_fp16(rl.tensor([-1e9, 2.0])).tolist() == [-65504.0, 2.0]


def test_rounded_inputs_and_results():
    weight, bias, x = rl.tensor([[1.0, -1.0]]), rl.tensor([0.25]), rl.tensor([[0.5, 0.25]])
    packed = rl._wrapped_linear_prepack(weight, rl.tensor(0.01), rl.tensor(0), bias)
    scales = (rl.tensor(0.01), rl.tensor(0)), (rl.tensor(0.1), rl.tensor(0))
    got = rl._wrapped_quantized_linear_prepacked(x, *scales[0], packed, *scales[1], 1)
    assert got.item() == pytest.approx(0.5)
    with pytest.raises(RuntimeError, match="rows of"):
        rl._wrapped_quantized_linear_prepacked(x, *scales[0], packed, *scales[1], 2)


@pytest.mark.filterwarnings("error")
def test_each_warns_once():
    _legacy._warned.clear()
    with pytest.warns(UserWarning, match="fbgemm_pack_gemm_matrix_fp16 is deprecated") as caught:
        rl.fbgemm_pack_gemm_matrix_fp16(rl.ones(2, 2))
        rl.fbgemm_pack_gemm_matrix_fp16(rl.ones(2, 2))
    assert len(caught) == 1 and caught[0].filename == __file__


CELLS = {
    "lstm": (rl.nn.LSTMCell, 4),
    "gru": (rl.nn.GRUCell, 3),
    "rnn_tanh": (rl.nn.RNNCell, 1),
    "rnn_relu": (rl.nn.RNNCell, 1),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells(name):
    rl.manual_seed(0)
    make, _ = CELLS[name]
    cell = make(5, 6, nonlinearity="relu") if name == "rnn_relu" else make(5, 6)
    x, h, c = rl.randn(3, 5), rl.randn(3, 6), rl.randn(3, 6)
    parts = [rl.fbgemm_linear_quantize_weight(w) for w in (cell.weight_ih, cell.weight_hh)]
    packed = [rl.fbgemm_pack_quantized_matrix(p[0]) for p in parts]
    args = (parts[0][0], parts[1][0], cell.bias_ih, cell.bias_hh, *packed)
    args += tuple(p[i] for i in (1, 2, 3) for p in parts)
    state = [h, c] if name == "lstm" else h
    got = getattr(rl, f"quantized_{name}_cell")(x, state, *args)
    want = cell(x, (h, c)) if name == "lstm" else cell(x, h)
    for a, b in zip(got, want, strict=True):
        rl.testing.assert_close(a, b.detach(), rtol=0, atol=0.05)
