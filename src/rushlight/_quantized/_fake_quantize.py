"""Values rounded as a quantized model would round them, for training with that in view."""

import rushlight as rl
from rushlight._core.compose import public


def _rounded(input, scale, zero_point, quant_min, quant_max):
    """The nearest of the values (q - zero_point) * scale with q from quant_min to quant_max. Its gradient passes where
    q is not cut off."""
    if quant_min > quant_max:
        raise RuntimeError(
            f"`quant_min` should be less than or equal to `quant_max`, got {quant_min} and {quant_max}"
        )
    x = input.detach()
    q = rl.round(x * (1 / scale)) + zero_point
    y = ((q.clamp(quant_min, quant_max) - zero_point) * scale).to(input.dtype)
    if not (input.requires_grad and rl.is_grad_enabled()):
        return y
    kept = rl.where((q >= quant_min) & (q <= quant_max), input, 0.0)
    return y + (kept - kept.detach())


@public
def fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max):
    """Rounds to multiples of `scale` that a quantized tensor could hold; the result stays floating.

    Args:
        input (Tensor): floating.
        scale (float or Tensor): the distance of levels.
        zero_point (int or Tensor): the integer that stands for 0.
        quant_min (int): the least integer.
        quant_max (int): the largest.

    Gradient:
        Passes where the integer lies within its bounds, else 0.

    Example:
        >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.7, 9.0]), 0.5, 0, -8, 7)
        tensor([0.5000, 3.5000])
    """
    if isinstance(scale, rl.Tensor):
        if scale.numel() != 1 or zero_point.numel() != 1:
            raise RuntimeError("fake_quantize_per_tensor_affine: expected one scale and one zero point")
        scale, zero_point = scale.detach().reshape(()), zero_point.detach().reshape(())
    elif not quant_min <= zero_point <= quant_max:
        raise RuntimeError(
            f"`zero_point` must be between `quant_min` and `quant_max`, got {zero_point}, {quant_min}, {quant_max}"
        )
    else:
        scale = rl.tensor(scale, dtype=rl.float32)  # as quantized tensors keep it
    return _rounded(input, scale, zero_point, quant_min, quant_max)


@public
def fake_quantize_per_channel_affine(input, scale, zero_point, axis, quant_min, quant_max):
    """Rounds to what a quantized tensor could hold, with a scale and a zero point for each index along `axis`.

    Args:
        input (Tensor): floating.
        scale (Tensor): distances of levels.
        zero_point (Tensor): the integers that stand for 0.
        axis (int): the dimension they belong to.
        quant_min (int): the least integer.
        quant_max (int): the largest.

    Gradient:
        Passes where the integer lies within its bounds, else 0.

    Example:
        >>> scale, zero = torch.tensor([0.5, 1.0]), torch.zeros(2, dtype=torch.int32)
        >>> torch.fake_quantize_per_channel_affine(torch.full((2, 1), 0.7), scale, zero, 0, -8, 7)
        tensor([[0.5000],
                [1.0000]])
    """
    if not -input.dim() <= axis < input.dim():
        raise RuntimeError(f"`axis` must be between 0 and number of dimensions of input, got {axis}")
    if scale.dim() != 1 or scale.shape != zero_point.shape or scale.numel() != input.size(axis):
        raise RuntimeError(
            f"dimensions of scale {tuple(scale.shape)} and zero-point {tuple(zero_point.shape)} are not consistent with "
            f"input tensor {tuple(input.shape)} along axis {axis}"
        )
    if zero_point.numel() and not quant_min <= int(zero_point.min()) <= int(zero_point.max()) <= quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    shape = [1] * input.dim()
    shape[axis] = -1
    return _rounded(input, scale.detach().view(shape), zero_point.detach().view(shape), quant_min, quant_max)
