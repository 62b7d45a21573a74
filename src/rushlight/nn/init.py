"""Fills parameters with their first values, in place and unseen by autograd; each function returns the tensor.

`layer.apply(fn)` runs a function on every part of a model, which fills weights by the class of the layer.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import rushlight as rl
from rushlight._C import Generator, Tensor
from rushlight._core.methods import modes as _modes

__all__ = [
    "calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_",
    "dirac_",
    "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_",
    "uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform",
    "kaiming_normal", "orthogonal", "sparse",
]  # fmt: skip

_LINEAR = {
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
}


def calculate_gain(
    nonlinearity: Literal[
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
        "tanh",
        "relu",
        "leaky_relu",
        "selu",
    ],
    param: float | None = None,
) -> float:
    """Returns the factor that keeps the variance of activations through a nonlinearity: 1, 5/3, sqrt(2), ...

    1 for 'linear', convolutions and 'sigmoid', 5/3 for 'tanh', sqrt(2) for 'relu', 3/4 for 'selu' and
    sqrt(2 / (1 + negative_slope^2)) for 'leaky_relu'.

    Args:
        nonlinearity (str): the name of the function in nn.functional.
        param (float): the negative slope of leaky_relu. Default: None, 0.01

    Example:
        >>> nn.init.calculate_gain("tanh")
        1.6666666666666667
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            negative_slope = 0.01
        elif not isinstance(param, bool) and isinstance(param, (int, float)):
            negative_slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + negative_slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


_F = TypeVar("_F", bound=Callable[..., Any])

_MOST_DRAWS = 2000  # of trunc_normal_: what they leave is beyond 100 std


def _overridable(function: _F) -> _F:
    """Lets classes and modes with __torch_function__ take over; they see the tensor as the argument `tensor`."""

    @functools.wraps(function)
    def asking(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if (type(tensor) is rl.Tensor or type(tensor) is rl.nn.Parameter) and not _modes:
            return function(tensor, *args, **kwargs)
        from rushlight.overrides import handle_torch_function, has_torch_function_variadic

        if not has_torch_function_variadic(tensor):
            return function(tensor, *args, **kwargs)
        names = function.__code__.co_varnames[1:]
        return handle_torch_function(
            asking, (tensor,), tensor=tensor, **dict(zip(names, args, strict=False)), **kwargs
        )

    return cast(_F, asking)


@_overridable
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills a tensor with draws from the uniform distribution U(a, b).

    Args:
        tensor (Tensor): filled in place.
        a (float): lower end. Default: 0.0
        b (float): upper end. Default: 1.0
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> nn.init.uniform_(torch.empty(2, 3), -1.0, 1.0)
        tensor([[-0.0075,  0.5364, -0.8230],
                [-0.7359, -0.3852,  0.2682]])
    """
    with rl.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_overridable
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills a tensor with draws from the normal distribution N(mean, std^2).

    Args:
        tensor (Tensor): filled in place.
        mean (float): mean. Default: 0.0
        std (float): standard deviation. Default: 1.0
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> nn.init.normal_(torch.empty(2, 3), std=0.02)
        tensor([[ 0.0308, -0.0059, -0.0436],
                [ 0.0114, -0.0217, -0.0280]])
    """
    with rl.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills a tensor with draws from N(mean, std^2) restricted to [a, b]: what falls outside is drawn again.

    The bounds are values, not multiples of std: the default ones cut nothing off where std is 0.02.

    Args:
        tensor (Tensor): filled in place.
        mean (float): mean before the restriction. Default: 0.0
        std (float): standard deviation before the restriction. Default: 1.0
        a (float): least value. Default: -2.0
        b (float): greatest value. Default: 2.0
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> bool(nn.init.trunc_normal_(torch.empty(1000)).abs().max() <= 2)
        True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            f"mean is more than 2 std from [a, b] in nn.init.trunc_normal_: so far out in the tail of "
            f"mean={mean}, std={std}, values in [{a}, {b}] are inexact",
            stacklevel=2,
        )
    low, high = (a - mean) / std, (b - mean) / std
    likely = (math.erf(high / math.sqrt(2.0)) - math.erf(low / math.sqrt(2.0))) / 2 >= 0.3
    densest = min(max(0.0, low), high)  # where in [low, high] the density is highest

    def draw() -> tuple[Tensor, Tensor]:
        """Values, and which of them to refuse. Where normal ones would mostly miss, uniform ones are thinned out."""
        if likely:
            x = rl.empty_like(tensor).normal_(mean, std, generator=generator)
            return x, (x < a) | (x > b)
        x = rl.empty_like(tensor).uniform_(a, b, generator=generator)
        chance = ((densest**2 - ((x - mean) / std) ** 2) / 2).exp()
        return x, rl.empty_like(tensor).uniform_(generator=generator) > chance

    with rl.no_grad():
        result, refused = draw()
        for _ in range(_MOST_DRAWS):
            if tensor.is_meta or not refused.any():
                return tensor.copy_(result)
            again, still = draw()
            result, refused = rl.where(refused, again, result), refused & still
        # So far out, the tail is an exponential distribution.
        rest = (
            rl.empty_like(tensor)
            .exponential_(max(abs(densest), 1.0), generator=generator)
            .clamp_(max=high - low)
        )
        away = (densest + (rest if densest >= 0 else -rest)) * std + mean
        return tensor.copy_(rl.where(refused, away.clamp_(a, b), result))


@_overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills a tensor with one value.

    Args:
        tensor (Tensor): filled in place.
        val (float): the value.

    Example:
        >>> nn.init.constant_(torch.empty(3), 0.5)
        tensor([0.5000, 0.5000, 0.5000])
    """
    with rl.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills a tensor with 1.

    Args:
        tensor (Tensor): filled in place.

    Example:
        >>> nn.init.ones_(torch.empty(3))
        tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills a tensor with 0.

    Args:
        tensor (Tensor): filled in place.

    Example:
        >>> nn.init.zeros_(torch.empty(3))
        tensor([0., 0., 0.])
    """
    with rl.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Makes a matrix the identity: 1 on the diagonal, 0 elsewhere, so that a linear layer passes its input on.

    Args:
        tensor (Tensor): of 2 dimensions, filled in place.

    Example:
        >>> nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with rl.no_grad():
        rl.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes a convolution pass its input channels on: 1 in the middle of the filter of channel c to c, 0 elsewhere.

    As many channels as both sides have are passed.

    Args:
        tensor (Tensor): a weight of 3, 4 or 5 dimensions, filled in place.
        groups (int): groups of the convolution, each of which passes its channels. Default: 1

    Example:
        >>> weight = nn.init.dirac_(torch.empty(2, 2, 3))
        >>> F.conv1d(torch.arange(6.0).view(1, 2, 3), weight, padding=1)
        tensor([[[0., 1., 2.],
                 [3., 4., 5.]]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    with rl.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, tensor.size(1))):
                tensor[(g * per_group + d, d, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Tensor, mode: Literal["fan_in", "fan_out"]) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills a weight from U(-b, b), b = gain sqrt(6 / (fan_in + fan_out)): Glorot's initialisation.

    It keeps the variance of activations and of gradients about equal through layers with tanh or sigmoid.
    For a weight (O, I, *k) fan_in is I prod(k), fan_out is O prod(k).

    Args:
        tensor (Tensor): at least 2 dimensions, filled in place.
        gain (float): a factor, `calculate_gain` of the nonlinearity. Default: 1.0
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> bool(nn.init.xavier_uniform_(torch.empty(30, 20)).abs().max() <= math.sqrt(6 / 50))
        True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills a weight from N(0, std^2), std = gain sqrt(2 / (fan_in + fan_out)): Glorot's initialisation.

    See `xavier_uniform_` for the fans.

    Args:
        tensor (Tensor): at least 2 dimensions, filled in place.
        gain (float): a factor, `calculate_gain` of the nonlinearity. Default: 1.0
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> nn.init.xavier_normal_(torch.empty(2, 3)).shape
        torch.Size([2, 3])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _nothing_to_fill(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


@_overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: Literal[
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
        "tanh",
        "relu",
        "leaky_relu",
        "selu",
    ] = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills a weight from U(-b, b), b = gain sqrt(3 / fan): He's initialisation, for layers with ReLU.

    The layers' default is a=sqrt(5), which gives b = 1 / sqrt(fan_in). A weight (O, I, *k) has fan_in I prod(k) and
    fan_out O prod(k); transposed convolutions hold (I, O, *k), so that theirs are exchanged.

    Args:
        tensor (Tensor): at least 2 dimensions, filled in place.
        a (float): the negative slope of leaky_relu, no other nonlinearity uses it. Default: 0
        mode (str): 'fan_in' keeps the variance forwards, 'fan_out' backwards. Default: 'fan_in'
        nonlinearity (str): the function after the layer, for `calculate_gain`. Default: 'leaky_relu'
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> w = nn.init.kaiming_uniform_(torch.empty(30, 20), nonlinearity="relu")
        >>> bool(w.abs().max() <= math.sqrt(6 / 20))
        True
    """
    if _nothing_to_fill(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: Literal["fan_in", "fan_out"] = "fan_in",
    nonlinearity: Literal[
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "sigmoid",
        "tanh",
        "relu",
        "leaky_relu",
        "selu",
    ] = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fills a weight from N(0, std^2), std = gain / sqrt(fan): He's initialisation, for layers with ReLU.

    See `kaiming_uniform_` for the fans.

    Args:
        tensor (Tensor): at least 2 dimensions, filled in place.
        a (float): the negative slope of leaky_relu, no other nonlinearity uses it. Default: 0
        mode (str): 'fan_in' keeps the variance forwards, 'fan_out' backwards. Default: 'fan_in'
        nonlinearity (str): the function after the layer, for `calculate_gain`. Default: 'leaky_relu'
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> nn.init.kaiming_normal_(torch.empty(8, 3, 3, 3), mode="fan_out", nonlinearity="relu").shape
        torch.Size([8, 3, 3, 3])
    """
    if _nothing_to_fill(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Makes the rows of a matrix (or the columns, where these are fewer) orthogonal vectors of length gain.

    It keeps the length of vectors through deep or recurrent layers. Dimensions after the first count as columns.

    Args:
        tensor (Tensor): at least 2 dimensions, filled in place.
        gain (float): the length. Default: 1
        generator (Generator): where random numbers come from. Default: None, the default one

    Example:
        >>> w = nn.init.orthogonal_(torch.empty(3, 5))
        >>> bool(torch.allclose(w @ w.T, torch.eye(3), atol=1e-5))
        True
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, cols = tensor.size(0), tensor.numel() // tensor.size(0)
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    if rows < cols:
        flat.t_()
    q, r = rl.linalg.qr(flat)
    q *= rl.diag(r, 0).sign()  # the sign that makes the distribution uniform
    if rows < cols:
        q.t_()
    with rl.no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fills a matrix from N(0, std^2) and sets a share of each column, chosen at random, to 0.

    Args:
        tensor (Tensor): of 2 dimensions, filled in place.
        sparsity (float): the share of each column, rounded up to whole elements.
        std (float): standard deviation of the others. Default: 0.01
        generator (Generator): where their values come from (not the positions). Default: None, the default one

    Example:
        >>> (nn.init.sparse_(torch.empty(4, 3), sparsity=0.5) == 0).sum(0)
        tensor([2, 2, 2])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with rl.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[rl.randperm(rows)[:zeros], col] = 0
    return tensor


def _old_name(fn: _F) -> _F:
    name = fn.__name__[:-1]

    def old(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2
        )
        return fn(*args, **kwargs)

    old.__name__, old.__doc__ = name, f"Fills a tensor as `{name}_` does: its deprecated name, which warns."
    return cast(_F, old)


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)

from rushlight._core.unsupported import unsupported_attribute as _unsupported_attribute  # noqa: E402

__getattr__ = _unsupported_attribute(__name__)


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: rl.Generator | None = None) -> Tensor:
    with rl.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(
    tensor: Tensor, mean: float, std: float, generator: rl.Generator | None = None
) -> Tensor:
    with rl.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: rl.Generator | None = None
) -> Tensor:
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with rl.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with rl.no_grad():
        return tensor.zero_()
