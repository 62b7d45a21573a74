"""One step of a recurrent layer with weights packed as int8, and batch norm of quantized tensors."""

import rushlight as rl
from rushlight._core.compose import public
from rushlight._quantized._legacy import fbgemm_linear_int8_weight_fp32_activation as _linear
from rushlight._quantized._schemes import PerTensor, in_range
from rushlight._quantized._tensor import QuantizedTensor, make, no_kernel


def _gates(
    input, hx, w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh, scale_ih, scale_hh,
    zero_point_ih, zero_point_hh,
):  # fmt: skip
    """What the input and what the state before give to the gates."""
    by_input = _linear(input, w_ih, packed_ih, col_offsets_ih, scale_ih, zero_point_ih, b_ih)
    return by_input, _linear(hx, w_hh, packed_hh, col_offsets_hh, scale_hh, zero_point_hh, b_hh)


@public
def quantized_lstm_cell(
    input, hx, w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh, scale_ih, scale_hh,
    zero_point_ih, zero_point_hh,
):  # fmt: skip
    """(h, c) after one step of an LSTM whose weights are int8."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    packed = (
        packed_ih,
        packed_hh,
        col_offsets_ih,
        col_offsets_hh,
        scale_ih,
        scale_hh,
        zero_point_ih,
        zero_point_hh,
    )
    by_input, by_state = _gates(input, hx[0], w_ih, w_hh, b_ih, b_hh, *packed)
    take, forget, new, give = (by_input + by_state).chunk(4, 1)
    c = forget.sigmoid() * hx[1] + take.sigmoid() * new.tanh()
    return give.sigmoid() * c.tanh(), c


@public
def quantized_gru_cell(
    input, hx, w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh, scale_ih, scale_hh,
    zero_point_ih, zero_point_hh,
):  # fmt: skip
    """h after one step of a GRU whose weights are int8."""
    packed = (
        packed_ih,
        packed_hh,
        col_offsets_ih,
        col_offsets_hh,
        scale_ih,
        scale_hh,
        zero_point_ih,
        zero_point_hh,
    )
    by_input, by_state = _gates(input, hx, w_ih, w_hh, b_ih, b_hh, *packed)
    (reset_i, keep_i, new_i), (reset_h, keep_h, new_h) = by_input.chunk(3, 1), by_state.chunk(3, 1)
    new = (new_i + (reset_i + reset_h).sigmoid() * new_h).tanh()
    return new + (keep_i + keep_h).sigmoid() * (hx - new)


def _rnn_cell(name, activation):
    def cell(
        input, hx, w_ih, w_hh, b_ih, b_hh, packed_ih, packed_hh, col_offsets_ih, col_offsets_hh, scale_ih, scale_hh,
        zero_point_ih, zero_point_hh,
    ):  # fmt: skip
        packed = (
            packed_ih, packed_hh, col_offsets_ih, col_offsets_hh, scale_ih, scale_hh, zero_point_ih, zero_point_hh,
        )  # fmt: skip
        by_input, by_state = _gates(input, hx, w_ih, w_hh, b_ih, b_hh, *packed)
        return activation(by_input + by_state)

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = "h after one step of a recurrent layer whose weights are int8."
    return public(cell)


quantized_rnn_relu_cell = _rnn_cell("quantized_rnn_relu_cell", rl.relu)
quantized_rnn_tanh_cell = _rnn_cell("quantized_rnn_tanh_cell", rl.tanh)


def batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point):
    """(x - mean) / sqrt(var + eps) * weight + bias of each channel, quantized with the scale given."""
    if not isinstance(input, QuantizedTensor):
        raise no_kernel(
            "quantized_batch_norm", "CPU", "it takes quantized tensors; for others there is batch_norm"
        )
    if input.dim() < 2 or mean.numel() != input.size(1):
        raise RuntimeError(
            f"quantized_batch_norm: expected one mean for each of the channels of {list(input.shape)}, got {mean.numel()}"
        )
    one, none = rl.ones_like(mean), rl.zeros_like(mean)
    factor = (one if weight is None else weight.detach()) / (var.detach() + eps).sqrt()
    shape = (1, -1, *[1] * (input.dim() - 2))
    given = PerTensor(output_scale, output_zero_point)
    # In units of the result, as PyTorch folds it: which way halves go depends on it.
    alpha = factor * (input.q_scale() / given.scale)
    beta = ((none if bias is None else bias.detach()) - mean.detach() * factor) / given.scale
    above = (input._ints().to(rl.int64) - input.q_zero_point()).float()
    y = above * alpha.reshape(shape) + beta.reshape(shape)
    return make(in_range(rl.round(y) + given.zero_point, input.dtype), input.dtype, given)


@public
def quantized_batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point):
    """Batch norm, in evaluation, of a quantized tensor."""
    return batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point)
