"""Primitives of PyTorch that have no function of their own here: torch.ops.aten.<name> by other functions."""

import rushlight as rl

from ._aten_activations import *  # noqa: F403  (found by their names)


def _to_copy(
    input, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None
):
    return input.to(device=device or input.device, dtype=dtype or input.dtype, copy=True)


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
    with rl.enable_grad():
        if output_mask[1] and ggW is not None:
            x = input.detach().requires_grad_()
            by_input = rl.autograd.grad(rl.convolution(x, ggW.detach(), None, *geometry), x, gO.detach())[0]
        if output_mask[2] and ggI is not None:
            w = weight.detach().requires_grad_()
            by_weight = rl.autograd.grad(rl.convolution(ggI.detach(), w, None, *geometry), w, gO.detach())[0]
    return by_gO, by_input, by_weight


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
    """Gradients by (input, weight, bias) of a convolution, None where output_mask does not ask."""
    wanted = [
        t.detach().requires_grad_(asked) for t, asked in zip((input, weight), output_mask[:2], strict=True)
    ]
    found = iter(())
    if any(output_mask[:2]):
        with rl.enable_grad():
            y = rl.convolution(*wanted, None, stride, padding, dilation, transposed, output_padding, groups)
        found = iter(rl.autograd.grad(y, [t for t in wanted if t.requires_grad], grad_output.detach()))
    by_input, by_weight = (next(found) if asked else None for asked in output_mask[:2])
    by_bias = grad_output.sum([0, *range(2, grad_output.dim())]) if output_mask[2] else None
    return by_input, by_weight, by_bias


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


def _assert_tensor_metadata(input, size=None, stride=None, dtype=None, *, device=None, layout=None):
    if dtype is not None and input.dtype != dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected {dtype}, got {input.dtype}")
    if size is not None and tuple(size) != tuple(input.shape):
        raise RuntimeError(f"Tensor sizes mismatch! Expected {tuple(size)}, got {tuple(input.shape)}")


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


def lift_fresh(input):
    return input


lift = lift_fresh


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


def missing(name):
    """A private primitive that nothing here answers to: packages list such names at import; a call says so."""

    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"torch.ops.aten.{name}: rushlight has no such primitive; call the public function instead"
        )

    refuse.__name__ = name
    return refuse
