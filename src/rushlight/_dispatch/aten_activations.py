"""The backward primitives of activations: torch.ops.aten.<activation>_backward. Each is a formula of tensors, so that it
can be differentiated and mapped once more.
"""

import math

import rushlight as rl

__all__ = [
    "elu_backward",
    "gelu_backward",
    "glu_backward",
    "hardshrink_backward",
    "hardsigmoid_backward",
    "hardswish_backward",
    "hardtanh_backward",
    "leaky_relu_backward",
    "log_sigmoid_backward",
    "logit_backward",
    "mish_backward",
    "silu_backward",
    "softplus_backward",
    "softshrink_backward",
]


def silu_backward(grad_output, input):
    s = rl.sigmoid(input)
    return grad_output * (s * (1 + input * (1 - s)))


def mish_backward(grad_output, input):
    t = rl.tanh(rl.nn.functional.softplus(input))
    return grad_output * (t + input * rl.sigmoid(input) * (1 - t * t))


def gelu_backward(grad_output, input, *, approximate="none"):
    if approximate == "tanh":
        scale, cubic = math.sqrt(2 / math.pi), 0.044715
        t = rl.tanh(scale * (input + cubic * input * input * input))
        derivative = scale * (1 + 3 * cubic * input * input)
        return grad_output * (0.5 * (1 + t) + 0.5 * input * (1 - t * t) * derivative)
    if approximate != "none":
        raise RuntimeError("approximate argument must be either none or tanh.")
    density = rl.exp(-0.5 * input * input) / math.sqrt(2 * math.pi)
    return grad_output * (0.5 * (1 + rl.erf(input / math.sqrt(2))) + input * density)


def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    x = self_or_result
    if is_result:
        if alpha < 0:
            raise RuntimeError(
                "In-place elu backward calculation is triggered with a negative slope which is not supported"
            )
        below = input_scale * (x + alpha * scale)
    else:
        below = input_scale * alpha * scale * rl.exp(x * input_scale)
    return grad_output * rl.where(x <= 0, below, scale)


def leaky_relu_backward(grad_output, input, negative_slope, self_is_result):
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not supported"
        )
    return rl.where(input > 0, grad_output, grad_output * negative_slope)


def hardtanh_backward(grad_output, input, min_val, max_val):
    return grad_output.masked_fill((input <= min_val) | (input >= max_val), 0)


def hardsigmoid_backward(grad_output, input):
    return (grad_output / 6).masked_fill((input <= -3) | (input >= 3), 0)


def hardswish_backward(grad_output, input):
    inside = grad_output * (input / 3 + 0.5)
    return rl.where(input <= -3, 0.0, rl.where(input < 3, inside, grad_output))


def hardshrink_backward(grad_output, input, lambd):
    return grad_output.masked_fill((input >= -lambd) & (input <= lambd), 0)


softshrink_backward = hardshrink_backward


def softplus_backward(grad_output, input, beta, threshold):
    return rl.where(input * beta > threshold, grad_output, grad_output * rl.sigmoid(input * beta))


def log_sigmoid_backward(grad_output, input, buffer):
    return grad_output * rl.sigmoid(-input)


def logit_backward(grad_output, input, eps=None):
    low = 0.0 if eps is None else eps
    outside = 0.0 if eps is not None else math.nan
    derivative = grad_output / (input * (1 - input))
    return rl.where((input < low) | (input > 1 - low), outside, derivative)


def glu_backward(grad_output, input, dim):
    first, second = input.chunk(2, dim)
    s = rl.sigmoid(second)
    return rl.cat([grad_output * s, grad_output * first * s * (1 - s)], dim)
