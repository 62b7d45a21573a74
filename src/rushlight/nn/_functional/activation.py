"""Activations. `inplace` overwrites the input."""

import warnings

import rushlight as rl
from rushlight.nn import _core as core


def relu(input, inplace=False):
    """max(0, x)."""
    return rl.relu_(input) if inplace else rl.relu(input)


def relu6(input, inplace=False):
    """min(max(0, x), 6)."""
    return core.hardtanh_(input, 0.0, 6.0) if inplace else core.hardtanh(input, 0.0, 6.0)


def threshold(input, threshold, value, inplace=False):
    """x where x > threshold, else `value`."""
    return rl.threshold_(input, threshold, value) if inplace else rl.threshold(input, threshold, value)


_threshold = threshold


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return core.hardtanh_(input, min_val, max_val) if inplace else core.hardtanh(input, min_val, max_val)


def hardsigmoid(input, inplace=False):
    """relu6(x + 3) / 6."""
    return core.hardsigmoid_(input) if inplace else core.hardsigmoid(input)


def hardswish(input, inplace=False):
    """x * hardsigmoid(x)."""
    return core.hardswish_(input) if inplace else core.hardswish(input)


def elu(input, alpha=1.0, inplace=False):
    """x where positive, else alpha * (e^x - 1)."""
    return core.elu_(input, alpha) if inplace else core.elu(input, alpha)


def selu(input, inplace=False):
    """elu scaled to keep mean 0 and variance 1 through layers."""
    return rl.selu_(input) if inplace else rl.selu(input)


def celu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha * (e^(x / alpha) - 1))."""
    return rl.celu_(input, alpha) if inplace else rl.celu(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where positive, else negative_slope * x."""
    return core.leaky_relu_(input, negative_slope) if inplace else core.leaky_relu(input, negative_slope)


def _rrelu_factor(input, lower, upper, training):
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound, but found {lower} and {upper}"
        )
    if not training:
        return None
    negative = input <= 0
    # One draw, in double precision, for each element that is not positive, in order.
    draws = rl.empty(int(negative.sum()), dtype=rl.float64).uniform_(lower, upper)
    return rl.ones_like(input).masked_scatter_(negative, draws.to(input.dtype))


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu with a slope drawn from [lower, upper) for each element, or their mean outside training."""
    with rl.no_grad():
        factor = _rrelu_factor(input, lower, upper, training)
    if factor is None:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    return input.mul_(factor) if inplace else input * factor


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def glu(input, dim=-1):
    """a * sigmoid(b) of the two halves of the input along a dimension."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return core.glu(input, dim)


def silu(input, inplace=False):
    """x * sigmoid(x)."""
    return core.silu_(input) if inplace else core.silu(input)


def mish(input, inplace=False):
    """x * tanh(softplus(x))."""
    return core.mish_(input) if inplace else core.mish(input)


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()


def tanh(input):
    """The hyperbolic tangent."""
    return input.tanh()


def sigmoid(input):
    """1 / (1 + e^-x)."""
    return input.sigmoid()


def logsigmoid(input):
    """log(sigmoid(x)), without underflow."""
    return core.logsigmoid(input)


def _get_softmax_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
        "argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """e^x / sum of e^x along a dimension; `dtype` casts the input first."""
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-x)."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)), without underflow."""
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; `hard` rounds it to one-hot but keeps its gradient."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -rl.empty_like(logits, memory_format=rl.contiguous_format).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = rl.zeros_like(logits, memory_format=rl.contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
