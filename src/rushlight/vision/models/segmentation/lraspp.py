"""Lite R-ASPP (Howard et al., 2019)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from rushlight import Tensor, nn
from rushlight.nn import functional as F

from .._api import entry
from .._utils import IntermediateLayerGetter
from ..mobilenetv3 import mobilenet_v3_large

__all__ = ["LRASPP"]


class LRASPP(nn.Module):
    """A backbone that gives "low" and "high", and a light head on both."""

    def __init__(
        self,
        backbone: Any,
        low_channels: Any,
        high_channels: Any,
        num_classes: int,
        inter_channels: int = 128,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input: Tensor) -> Any:
        out = self.classifier(self.backbone(input))
        out = F.interpolate(out, size=input.shape[-2:], mode="bilinear", align_corners=False)
        return OrderedDict(out=out)


class LRASPPHead(nn.Module):
    """High features, weighted by the whole image and enlarged, beside low ones."""

    def __init__(self, low_channels: Any, high_channels: Any, num_classes: int, inter_channels: Any) -> None:
        super().__init__()

        def project() -> Any:
            return nn.Conv2d(high_channels, inter_channels, 1, bias=False)

        self.cbr = nn.Sequential(project(), nn.BatchNorm2d(inter_channels), nn.ReLU(inplace=True))
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), project(), nn.Sigmoid())
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input: Tensor) -> Any:
        low, high = input["low"], input["high"]
        weighted = self.cbr(high) * self.scale(high)
        enlarged = F.interpolate(weighted, low.shape[-2:], mode="bilinear", align_corners=False)
        return self.low_classifier(low) + self.high_classifier(enlarged)


@entry
def lraspp_mobilenet_v3_large(
    weights: Any = None, num_classes: int = 21, weights_backbone: str = "IMAGENET1K_V1", **kwargs: Any
) -> LRASPP:
    """Lite R-ASPP on MobileNet v3, large."""
    if kwargs.pop("aux_loss", False):
        raise NotImplementedError("This model does not use auxiliary loss")
    features = mobilenet_v3_large(
        weights=None if weights is not None else weights_backbone, dilated=True
    ).features
    cuts = [0] + [i for i, b in enumerate(features) if getattr(b, "_is_cn", False)] + [len(features) - 1]
    low, high = cuts[-4], cuts[-1]
    body = IntermediateLayerGetter(features, {str(low): "low", str(high): "high"})
    return LRASPP(body, features[low].out_channels, features[high].out_channels, num_classes, **kwargs)
