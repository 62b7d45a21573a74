"""Primitives of PyTorch that have no function of their own here: torch.ops.aten.<name> by other functions."""

import rushlight as rl

from .aten_activations import *  # noqa: F403  (found by their names)


def _to_copy(
    input, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None
):
    return input.to(device=device or input.device, dtype=dtype or input.dtype, copy=True)


def _sparse_compressed_tensor_with_dims(
    nnz, dense_dim, size, blocksize, index_dtype, *, dtype=None, layout=None, device=None, pin_memory=None
):
    from ..sparse._compressed_resize import with_dims

    return with_dims(nnz, dense_dim, size, blocksize, index_dtype, dtype=dtype, layout=layout)


def _unsafe_view(input, size):
    return input.view(size)


def _reshape_alias(input, size, stride):
    return input.as_strided(size, stride, input.storage_offset())


def _local_scalar_dense(input):
    return input.item()


def _softmax(input, dim, half_to_float=False):
    return rl.softmax(input, dim, dtype=rl.float32 if half_to_float else None)


def _log_softmax(input, dim, half_to_float=False):
    return rl.log_softmax(input, dim, dtype=rl.float32 if half_to_float else None)


def _softmax_backward_data(grad_output, output, dim, input_dtype):
    return (output * (grad_output - (grad_output * output).sum(dim, keepdim=True))).to(input_dtype)


def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


def convolution_backward(
    grad_output,
    input,
    weight,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    """Gradients of a convolution by (input, weight, bias); None where the mask asks for none."""
    geometry = (stride, padding, dilation, transposed, output_padding, groups)
    _, pull = rl.func.vjp(lambda x, w: rl.convolution(x, w, None, *geometry), input, weight)
    found = pull(grad_output) if output_mask[0] or output_mask[1] else (None, None)
    by_input, by_weight = (g if asked else None for g, asked in zip(found, output_mask[:2], strict=True))
    others = [0, *range(2, grad_output.dim())]
    return by_input, by_weight, grad_output.sum(others) if output_mask[2] else None


def _convolution_double_backward(
    ggI,
    ggW,
    ggb,
    gO,
    weight,
    input,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    """Gradients by (gO, input, weight) of a convolution's gradients, which ggI, ggW and ggb come back for."""
    geometry = (stride, padding, dilation, transposed, output_padding, groups)
    by_gO = by_input = by_weight = None
    if output_mask[0]:
        by_gO = gO.new_zeros(gO.shape)
        for x, w in ((ggI, weight), (input, ggW)):
            if x is not None and w is not None:
                by_gO = by_gO + rl.convolution(x, w, None, *geometry)
        if ggb is not None:
            by_gO = by_gO + ggb.reshape(-1, *[1] * (gO.dim() - 2))
    if output_mask[1] and ggW is not None:
        (by_input,) = rl.func.vjp(lambda x: rl.convolution(x, ggW, None, *geometry), input)[1](gO)
    if output_mask[2] and ggI is not None:
        (by_weight,) = rl.func.vjp(lambda w: rl.convolution(ggI, w, None, *geometry), weight)[1](gO)
    return by_gO, by_input, by_weight


def tanh_backward(grad_output, output):
    return grad_output * (1 - output * output).conj()


def sigmoid_backward(grad_output, output):
    return grad_output * ((1 - output) * output).conj()


def threshold_backward(grad_output, input, threshold):
    return grad_output.masked_fill(input <= threshold, 0)


def select_backward(grad_output, input_sizes, dim, index):
    return rl.select_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, index)


def slice_backward(grad_output, input_sizes, dim, start, end, step):
    return rl.slice_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, start, end, step)


def _assert_async(input, message=None):
    rl._assert_async(input, message)


def _assert_scalar(value, message):
    if not value:
        raise RuntimeError(message)


from .._compat.checks import _assert_tensor_metadata  # noqa: E402, F401


def sym_size(input, dim=None):
    return input.size() if dim is None else input.size(dim)


def sym_stride(input, dim=None):
    return input.stride() if dim is None else input.stride(dim)


def sym_numel(input):
    return input.numel()


def sym_storage_offset(input):
    return input.storage_offset()


def sym_constrain_range_for_size(size, *, min=None, max=None):
    return None


sym_constrain_range = sym_constrain_range_for_size


def copy(input, src, non_blocking=False):
    """src with the shape, type and strides of input."""
    made = rl.empty_strided(tuple(input.shape), input.stride(), dtype=input.dtype, device=input.device)
    return made.copy_(src)


def lift_fresh(input):
    return input


lift = lift_fresh


def lift_fresh_copy(input):
    return input.clone()


def index(input, indices):
    return input[tuple(slice(None) if i is None else i for i in indices)]


def alias(input):
    return input.view_as(input)


def _conj(input):
    return input.conj()


def _index_put_impl_(input, indices, values, accumulate=False, unsafe=False):
    return input.index_put_(indices, values, accumulate)


def _fft_c2c(input, dim, normalization, forward):
    norm = {0: "backward" if forward else "forward", 1: "ortho", 2: "forward" if forward else "backward"}[
        normalization
    ]
    return (rl.fft.fftn if forward else rl.fft.ifftn)(input, dim=dim, norm=norm)


def _foreach_maximum_(tensors, other):
    for i, t in enumerate(tensors):
        t.copy_(t.maximum(other[i]) if isinstance(other, (list, tuple)) else t.clamp_min(other))


def _foreach_minimum_(tensors, other):
    for i, t in enumerate(tensors):
        t.copy_(t.minimum(other[i]) if isinstance(other, (list, tuple)) else t.clamp_max(other))


def is_non_overlapping_and_dense(input):
    """Whether the elements fill a range of memory, in any order of dimensions."""
    step = 1
    for stride, size in sorted(zip(input.stride(), input.size(), strict=True)) if not input.is_nested else ():
        if size != 1:
            if stride != step:
                return False
            step *= size
    return not input.is_nested


def dim(input):
    return input.dim()


def size(input, dim=None):
    if dim is None and input.layout is rl.jagged:
        raise RuntimeError(
            "NestedTensor does not support directly calling torch.ops.aten.size: use `nested_tensor.size()` instead."
        )
    return input.size() if dim is None else input.size(dim)


def _jagged_to_padded_dense_forward(values, offsets, max_lengths, padding_value=0.0):
    """(B, L, ...) of values whose sequences begin at the offsets: cut, or filled up, to a length."""
    from ..nested import _pad

    return _pad.jagged_to_padded(values, offsets, max_lengths, padding_value)


def _padded_dense_to_jagged_forward(dense, offsets, total_L=None):
    """The values of a padded batch that belong to the sequences of the offsets."""
    from ..nested import _pad

    return _pad.padded_to_jagged(dense, offsets, total_L)


def _scaled_dot_product_attention_math(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    dropout_mask=None,
    *,
    scale=None,
    enable_gqa=False,
):
    """(attention, its weights), by plain products."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    if enable_gqa:
        key, value = (t.repeat_interleave(query.size(-3) // t.size(-3), -3) for t in (key, value))
    scores = (query * scale) @ key.transpose(-2, -1)
    if is_causal:
        attn_mask = rl.ones(scores.shape[-2:], dtype=rl.bool).tril()
    if attn_mask is not None:
        scores = (
            scores.masked_fill(~attn_mask, float("-inf"))
            if attn_mask.dtype == rl.bool
            else scores + attn_mask
        )
    weights = scores.softmax(-1)
    kept = weights
    if dropout_mask is not None:
        kept = weights.masked_fill(~dropout_mask, 0.0) / (1 - dropout_p)
    elif dropout_p:
        kept = rl.dropout(weights, dropout_p, True)
    return kept @ value, weights


def missing(name):
    """A private primitive that nothing here answers to: packages list such names at import; a call says so."""

    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"torch.ops.aten.{name}: rushlight has no such primitive; call the public function instead"
        )

    refuse.__name__ = name
    return refuse
