"""Initial weights that several families of models share."""

from rushlight import nn
from rushlight.nn.modules.batchnorm import _NormBase
from rushlight.nn.modules.conv import _ConvNd


def init_fan_out(model: nn.Module, *, conv_bias: bool = True, linear_std: float | None = None) -> None:
    """Draws the weights of convolutions from He's normal distribution over the fan-out, in the order of modules().

    Normalisations become the identity. conv_bias=False leaves the biases of convolutions as they are; linear_std
    is the standard deviation of the weights of linear layers, which are left alone without it.
    """
    for layer in model.modules():
        constants = {}
        if isinstance(layer, _ConvNd):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            constants = {"bias": 0.0} if conv_bias else {}
        elif isinstance(layer, _NormBase):
            constants = {"weight": 1.0, "bias": 0.0}
        elif isinstance(layer, nn.Linear) and linear_std is not None:
            nn.init.normal_(layer.weight, std=linear_std)
            constants = {"bias": 0.0}
        for name, value in constants.items():
            parameter = getattr(layer, name)
            if parameter is not None:
                nn.init.constant_(parameter, value)
