"""Building blocks of vision models."""

from __future__ import annotations

import rushlight as rl
from rushlight import nn


class FrozenBatchNorm2d(nn.Module):
    """Batch normalization whose statistics and weights are constants."""

    weight: rl.Tensor
    bias: rl.Tensor
    running_mean: rl.Tensor
    running_var: rl.Tensor

    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", rl.ones(num_features))
        self.register_buffer("bias", rl.zeros(num_features))
        self.register_buffer("running_mean", rl.zeros(num_features))
        self.register_buffer("running_var", rl.ones(num_features))

    def _load_from_state_dict(self, state_dict, prefix, *args):
        state_dict.pop(
            prefix + "num_batches_tracked", None
        )  # files of models with a trained normalization have it
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x):
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def __repr__(self):
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"


class ConvNormActivation(nn.Sequential):
    """Convolution, normalization, activation; the padding keeps the size at stride 1 unless given."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size=3,
        stride=1,
        padding=None,
        groups=1,
        norm_layer=nn.BatchNorm2d,
        activation_layer=nn.ReLU,
        dilation=1,
        inplace=True,
        bias=None,
        conv_layer=nn.Conv2d,
    ):
        if padding is None:
            if isinstance(kernel_size, int) and isinstance(dilation, int):
                padding = (kernel_size - 1) // 2 * dilation
            else:
                n = len(kernel_size) if not isinstance(kernel_size, int) else len(dilation)
                sizes = (kernel_size,) * n if isinstance(kernel_size, int) else kernel_size
                steps = (dilation,) * n if isinstance(dilation, int) else dilation
                padding = tuple((k - 1) // 2 * d for k, d in zip(sizes, steps))
        bias = norm_layer is None if bias is None else bias
        options = {"dilation": dilation, "groups": groups, "bias": bias}
        super().__init__(conv_layer(in_channels, out_channels, kernel_size, stride, padding, **options))
        if norm_layer is not None:
            self.append(norm_layer(out_channels))
        if activation_layer is not None:
            self.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        self.out_channels = out_channels


class Conv2dNormActivation(ConvNormActivation):
    """Conv2d, normalization, activation."""


class Conv3dNormActivation(ConvNormActivation):
    """Conv3d, normalization, activation."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size=3,
        stride=1,
        padding=None,
        groups=1,
        norm_layer=nn.BatchNorm3d,
        activation_layer=nn.ReLU,
        dilation=1,
        inplace=True,
        bias=None,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer, activation_layer, dilation,
            inplace, bias, nn.Conv3d,
        )  # fmt: skip


class SqueezeExcitation(nn.Module):
    """Channels weighted by what all of the image says."""

    def __init__(self, input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation = activation()
        self.scale_activation = scale_activation()

    def _scale(self, input):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input)))))

    def forward(self, input):
        return self._scale(input) * input


class MLP(nn.Sequential):
    """Linear layers with normalization, activation and dropout between them."""

    def __init__(
        self,
        in_channels,
        hidden_channels,
        norm_layer=None,
        activation_layer=nn.ReLU,
        inplace=None,
        bias=True,
        dropout=0.0,
    ):
        options = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        width = in_channels
        for hidden in hidden_channels[:-1]:
            layers.append(nn.Linear(width, hidden, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(hidden))
            layers += [activation_layer(**options), nn.Dropout(dropout, **options)]
            width = hidden
        layers += [nn.Linear(width, hidden_channels[-1], bias=bias), nn.Dropout(dropout, **options)]
        super().__init__(*layers)


class Permute(nn.Module):
    """A tensor's dimensions in another order."""

    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return rl.permute(x, self.dims)
