"""AlexNet (Krizhevsky, 2014)."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import nn

from ._api import entry

__all__ = ["AlexNet"]


class AlexNet(nn.Module):
    """Five convolutions, three linear layers."""

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        layers = []
        # (in, out, kernel, stride, padding, whether pooled)
        for i, o, k, s, p, pooled in (
            (3, 64, 11, 4, 2, True),
            (64, 192, 5, 1, 2, True),
            (192, 384, 3, 1, 1, False),
            (384, 256, 3, 1, 1, False),
            (256, 256, 3, 1, 1, True),
        ):
            layers += [nn.Conv2d(i, o, kernel_size=k, stride=s, padding=p), nn.ReLU(inplace=True)]
            if pooled:
                layers.append(nn.MaxPool2d(kernel_size=3, stride=2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        head = []
        for features in (256 * 6 * 6, 4096):
            head += [nn.Dropout(p=dropout), nn.Linear(features, 4096), nn.ReLU(inplace=True)]
        self.classifier = nn.Sequential(*head, nn.Linear(4096, num_classes))

    def forward(self, x: rl.Tensor) -> Any:
        return self.classifier(rl.flatten(self.avgpool(self.features(x)), 1))


@entry
def alexnet(**kwargs: Any) -> AlexNet:
    """AlexNet, its version in one tower."""
    return AlexNet(**kwargs)
