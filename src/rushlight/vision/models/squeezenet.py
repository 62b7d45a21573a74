"""SqueezeNet (Iandola et al., 2016)."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn

from .._init import initialize, normal
from ._api import entry

__all__ = ["SqueezeNet"]


class Fire(nn.Module):
    """Few channels by 1 x 1, then many by 1 x 1 and 3 x 3 side by side."""

    squeeze: nn.Module
    squeeze_activation: nn.Module
    expand1x1: nn.Module
    expand1x1_activation: nn.Module
    expand3x3: nn.Module
    expand3x3_activation: nn.Module

    def __init__(
        self, inplanes: int, squeeze_planes: Any, expand1x1_planes: Any, expand3x3_planes: Any
    ) -> None:
        super().__init__()
        self.inplanes = inplanes
        for name, inputs, outputs, kernel in (
            ("squeeze", inplanes, squeeze_planes, 1),
            ("expand1x1", squeeze_planes, expand1x1_planes, 1),
            ("expand3x3", squeeze_planes, expand3x3_planes, 3),
        ):
            self.add_module(name, nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2))
            self.add_module(f"{name}_activation", nn.ReLU(inplace=True))

    def forward(self, x: rl.Tensor) -> Any:
        x = self.squeeze_activation(self.squeeze(x))
        one = self.expand1x1_activation(self.expand1x1(x))
        return rl.cat([one, self.expand3x3_activation(self.expand3x3(x))], 1)


# The first convolution, then fires (squeezed, expanded twice) and poolings ("M").
_PLANS: dict[str, Any] = {
    "1_0": (
        (96, 7),
        [(16, 64), (16, 64), (32, 128), "M", (32, 128), (48, 192), (48, 192), (64, 256), "M", (64, 256)],
    ),
    "1_1": (
        (64, 3),
        [(16, 64), (16, 64), "M", (32, 128), (32, 128), "M", (48, 192), (48, 192), (64, 256), (64, 256)],
    ),
}


class SqueezeNet(nn.Module):
    """A convolution, eight fires, a convolution as classifier."""

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        if version not in _PLANS:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.num_classes = num_classes
        (channels, kernel), plan = _PLANS[version]
        pool = lambda: nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True)  # noqa: E731
        layers: list[nn.Module] = [
            nn.Conv2d(3, channels, kernel_size=kernel, stride=2),
            nn.ReLU(inplace=True),
            pool(),
        ]
        for part in plan:
            if part == "M":
                layers.append(pool())
                continue
            squeezed, expanded = part
            layers.append(Fire(channels, squeezed, expanded, expanded))
            channels = 2 * expanded
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        initialize(self.features, conv=nn.init.kaiming_uniform_)
        initialize(self.classifier, conv=normal(0.01))

    def forward(self, x: rl.Tensor) -> Any:
        return rl.flatten(self.classifier(self.features(x)), 1)


@entry
def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0."""
    return SqueezeNet("1_0", **kwargs)


@entry
def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1: less than half the work of 1.0."""
    return SqueezeNet("1_1", **kwargs)
