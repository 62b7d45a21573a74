"""SSDlite (Sandler et al., 2018; Howard et al., 2019): SSD with depthwise convolutions."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any

from rushlight import Tensor, nn

from ...ops.misc import Conv2dNormActivation
from .._api import entry
from ..mobilenetv3 import mobilenet_v3_large
from ._utils import retrieve_out_channels
from .anchor_utils import DefaultBoxGenerator
from .backbone_utils import _validate_trainable_layers
from .ssd import SSD, SSDScoringHead, warn_size

__all__ = []


def _prediction_block(in_channels: Any, out_channels: int, kernel_size: Any, norm_layer: Any) -> Any:
    depthwise = Conv2dNormActivation(
        in_channels,
        in_channels,
        kernel_size=kernel_size,
        groups=in_channels,
        norm_layer=norm_layer,
        activation_layer=nn.ReLU6,
    )
    return nn.Sequential(depthwise, nn.Conv2d(in_channels, out_channels, 1))


def _extra_block(in_channels: Any, out_channels: int, norm_layer: Any) -> Any:
    middle = out_channels // 2
    layer = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.ReLU6)
    return nn.Sequential(
        layer(in_channels, middle, kernel_size=1),
        layer(middle, middle, kernel_size=3, stride=2, groups=middle),
        layer(middle, out_channels, kernel_size=1),
    )


def _normal_init(module: Any) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.normal_(layer.weight, mean=0.0, std=0.03)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, 0.0)


def _blocks(in_channels: Any, num_anchors: Any, columns: Any, norm_layer: Any) -> Any:
    blocks = nn.ModuleList(
        _prediction_block(c, columns * n, 3, norm_layer) for c, n in zip(in_channels, num_anchors)
    )
    _normal_init(blocks)
    return blocks


class SSDLiteClassificationHead(SSDScoringHead):
    """The classes of boxes."""

    def __init__(self, in_channels: Any, num_anchors: Any, num_classes: int, norm_layer: Any) -> None:
        super().__init__(_blocks(in_channels, num_anchors, num_classes, norm_layer), num_classes)


class SSDLiteRegressionHead(SSDScoringHead):
    """How far off boxes are."""

    def __init__(self, in_channels: Any, num_anchors: Any, norm_layer: Any) -> None:
        super().__init__(_blocks(in_channels, num_anchors, 4, norm_layer), 4)


class SSDLiteHead(nn.Module):
    """Classes and boxes."""

    def __init__(self, in_channels: Any, num_anchors: Any, num_classes: int, norm_layer: Any) -> None:
        super().__init__()
        sizes = in_channels, num_anchors
        self.classification_head = SSDLiteClassificationHead(*sizes, num_classes, norm_layer)
        self.regression_head = SSDLiteRegressionHead(*sizes, norm_layer)

    def forward(self, x: Tensor) -> Any:
        return {"bbox_regression": self.regression_head(x), "cls_logits": self.classification_head(x)}


class SSDLiteFeatureExtractorMobileNet(nn.Module):
    """Two maps of a MobileNet, the first from inside of a block, and four more after it."""

    def __init__(
        self, backbone: Any, c4_pos: Any, norm_layer: Any, width_mult: float = 1.0, min_depth: int = 16
    ) -> None:
        super().__init__()
        if getattr(backbone[c4_pos], "use_res_connect", False):
            raise ValueError("backbone[c4_pos].use_res_connect should be False")
        split = backbone[c4_pos].block
        self.features = nn.Sequential(
            nn.Sequential(*backbone[:c4_pos], split[0]),
            nn.Sequential(split[1:], *backbone[c4_pos + 1 :]),
        )
        widths = [backbone[-1].out_channels] + [
            max(min_depth, int(d * width_mult)) for d in (512, 256, 256, 128)
        ]
        extra = nn.ModuleList(_extra_block(a, b, norm_layer) for a, b in zip(widths, widths[1:]))
        _normal_init(extra)
        self.extra = extra

    def forward(self, x: Tensor) -> Any:
        maps = []
        for block in (*self.features, *self.extra):
            x = block(x)
            maps.append(x)
        return OrderedDict((str(i), m) for i, m in enumerate(maps))


def _mobilenet_extractor(
    backbone: Any, trainable_layers: Any, norm_layer: Any
) -> SSDLiteFeatureExtractorMobileNet:
    """The maps of a MobileNet whose first stages are frozen."""
    backbone = backbone.features
    stages = [0] + [i for i, b in enumerate(backbone) if getattr(b, "_is_cn", False)] + [len(backbone) - 1]
    if not 0 <= trainable_layers <= len(stages):
        raise ValueError(
            f"trainable_layers should be in the range [0, {len(stages)}], instead got {trainable_layers}"
        )
    start = len(backbone) if trainable_layers == 0 else stages[len(stages) - trainable_layers]
    for b in backbone[:start]:
        for parameter in b.parameters():
            parameter.requires_grad_(False)
    return SSDLiteFeatureExtractorMobileNet(backbone, stages[-2], norm_layer)


@entry
def ssdlite320_mobilenet_v3_large(weights: Any = None, num_classes: int = 91, **kwargs: Any) -> SSD:
    """SSDlite on MobileNet v3, for images of 320 x 320."""
    warn_size(kwargs)
    first = kwargs.pop("weights_backbone", "IMAGENET1K_V1")
    first = None if weights is not None else first
    trained = weights is not None or first is not None
    layers = _validate_trainable_layers(trained, kwargs.pop("trainable_backbone_layers", None), 6, 6)
    norm = kwargs.pop("norm_layer", None) or partial(nn.BatchNorm2d, eps=0.001, momentum=0.03)
    # Without weights of ImageNet the last stage has half the channels, as in the paper.
    backbone = mobilenet_v3_large(weights=first, norm_layer=norm, reduced_tail=first is None)
    backbone = _mobilenet_extractor(backbone, layers, norm)
    size = (320, 320)
    anchors = DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)
    widths, per_position = retrieve_out_channels(backbone, size), anchors.num_anchors_per_location()
    if len(widths) != len(per_position):
        raise ValueError(
            f"The output channels have {len(widths)} values, and the anchors {len(per_position)}"
        )
    known = {
        "score_thresh": 0.001,
        "nms_thresh": 0.55,
        "detections_per_img": 300,
        "topk_candidates": 300,
        "image_mean": [0.5, 0.5, 0.5],  # the input is from -1 to 1
        "image_std": [0.5, 0.5, 0.5],
        **kwargs,
    }
    head = SSDLiteHead(widths, per_position, num_classes, norm)
    return SSD(backbone, anchors, size, num_classes, head=head, **known)
