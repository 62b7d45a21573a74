"""Initial weights that families of models share."""

import math
from collections.abc import Callable
from functools import partial

import rushlight as rl
from rushlight import nn
from rushlight.nn.modules.batchnorm import _NormBase
from rushlight.nn.modules.conv import _ConvNd

Draw = Callable[[rl.Tensor], object]
he_fan_out = partial(nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")


def normal(std: float) -> Draw:
    """Draws from the normal distribution around 0."""
    return partial(nn.init.normal_, std=std)


def truncated(std: float) -> Draw:
    """Draws from the normal distribution around 0, cut off at -2 and 2."""
    return partial(nn.init.trunc_normal_, std=std)


def he_fan_out_of_all_groups(weight: rl.Tensor) -> rl.Tensor:
    """He's normal distribution over the fan-out of a convolution without groups."""
    fan_out = weight.shape[0] * math.prod(weight.shape[2:])
    return nn.init.normal_(weight, std=math.sqrt(2.0 / fan_out))


def constant(value: float) -> Draw:
    return partial(nn.init.constant_, val=value)


_ZERO, _ONE = constant(0.0), constant(1.0)


def initialize(
    model: nn.Module,
    *,
    conv: Draw | None = None,
    linear: Draw | None = None,
    bias: Draw | None = _ZERO,
) -> None:
    """Draws the weights of convolutions and linear layers, in the order of modules(), and sets their biases.

    Layers for which there is no function stay as they are; normalisations become the identity.
    """
    for layer in model.modules():
        draw = conv if isinstance(layer, _ConvNd) else linear if isinstance(layer, nn.Linear) else None
        plan: dict[str, Draw | None] = {} if draw is None else {"weight": draw, "bias": bias}
        if isinstance(layer, (_NormBase, nn.GroupNorm)):
            plan = {"weight": _ONE, "bias": _ZERO}
        for name, fill in plan.items():
            parameter = getattr(layer, name)
            if parameter is not None and fill is not None:
                fill(parameter)
